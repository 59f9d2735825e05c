"""Fit a map on a sample of an input."""

from kafeat.jobs.fit.fit import columns_of, fit_reader, read_job, read_sample, recipe_of, roles_of
from kafeat.jobs.fit.held_out import RowRule, among, learned_map, map_of_rows, predicted, results_of
from kafeat.jobs.fit.intervals import random_folds
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labels import (
    LabelArgument,
    LabelNames,
    check_label,
    check_split,
    has_label,
    label_argument,
    label_names,
    label_of_task,
    plain_names,
)
from kafeat.jobs.fit.looks import (
    IMPUTE,
    LOOK,
    MIN_FREQUENCY,
    Encoding,
    Groups,
    Look,
    date_parts,
    groups_of,
    one_hot,
    side_by_side,
    target,
    text,
    with_columns,
)
from kafeat.jobs.fit.map_on_data import Inputs, KernelMatrix, MapOnData, timed
from kafeat.jobs.fit.messages import SILENT, Listener, Say
from kafeat.jobs.fit.predictor import LabelledRows, PredictorJob, check_weight, fit_predictor
from kafeat.jobs.fit.reread import RereadableData, rereadable
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.jobs.fit.search import Recipe, SampleSplit, Subset, fit_chain, learn_ridge, nested, subset_of
from kafeat.jobs.fit.split_by import SplitBy
