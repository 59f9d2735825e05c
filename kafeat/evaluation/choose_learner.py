"""Choose a learner by its name."""

from __future__ import annotations

from kafeat.errors import UsageError
from kafeat.evaluation.learners import Learner, Ridge

LEARNERS = ("ridge", "linear_svc", "linear_svc_hinge", "linear_svc_l1", "dual_l1", "logistic", "sgd")


def learner_of(name: str, tau: float = 0.1, jobs: int = 1, n_labels: int = 1) -> Learner:
    """Return a learner by its name. All but ridge need the extra kafeat[evaluate]; ridge uses `jobs` threads.

    Only ridge learns several labels.
    """
    if name == "ridge":
        return Ridge(jobs)
    if name not in LEARNERS:
        raise UsageError(f"learner: expected one of {', '.join(LEARNERS)}, got {name!r}")
    if n_labels > 1:
        raise UsageError(f"learner: expected ridge, as there are {n_labels} labels, got {name}")
    try:
        from kafeat.evaluation.learners_sklearn import learner
    except ImportError as error:
        raise UsageError(
            f"learner {name}: expected scikit-learn, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    return learner(name, tau)
