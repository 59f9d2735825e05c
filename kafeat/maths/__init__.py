"""Formulas, without file access."""

from kafeat.maths.boosting import load_library
from kafeat.maths.calibration import (
    calibration_p_value,
    fit_calibration,
    held_out_probabilities,
    of_all_classes,
    reliability,
)
from kafeat.maths.exact_machine import errors_of_others
from kafeat.maths.intervals import Intervals, compared_errors, compared_scores, coverage_p_value
from kafeat.maths.kernel_error import power_of_two
from kafeat.maths.logistic import LogisticMachine
from kafeat.maths.ridge import KernelRidge, NormalEquations
from kafeat.maths.row_sample import Hashes, mixed, row_hashes
from kafeat.maths.scoring import (
    INTERVAL,
    PROPER,
    SCORES,
    Judged,
    Score,
    ScoringName,
    constant_predictions,
    score_for,
    scores_of,
)
from kafeat.maths.task import (
    Kind,
    PredictionTask,
    TaskKind,
    class_numbers,
    kind_to_learn,
    task_of,
    task_to_score,
)
