"""The common base of the estimators: parameters, checks of rows, and the pickle of a fitted map.

Parameters of steps have names as in a scikit-learn pipeline: `fourier__n_components`.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, wraps
from typing import Any, ClassVar, Self, TypeVar

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from kafeat.chain.chain import sources_of
from kafeat.config import Config, load_config
from kafeat.config.model import GROUPS_BESIDE
from kafeat.contract.describe import spell
from kafeat.contract.traits import takes_missing
from kafeat.errors import DataError, KafeatError, KafeatWarning, UsageError, quoted, spell_row
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import NamedReader, reader_of
from kafeat.io.readers.views import WiderReader
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.labels import check_label_array
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.search import limit_landmarks
from kafeat.model.feature_map import FeatureMap as FittedMap
from kafeat.registry import build_step, kinds, step_class
from kafeat.types import Array

Recipe = dict[str, Any]
R = TypeVar("R")

_WEIGHT, _GROUPS = "<sample_weight>", "<groups>"

_WRONG = re.compile(r"Input X contains (NaN|infinity)|could not convert string to float: (?P<text>.*)")
_NEGATIVE = re.compile(r": expected a value (of at least 0|above -[^,]*), got -")

_REMEDIES = {
    "text": "name it in a one_hot step, leave it out, or use TunedFeatureMap",
    "date": "name it in a date_parts step, leave it out, or use TunedFeatureMap",
    "list": "make a column of each of its numbers",
}


def named(steps: object) -> dict[str, Recipe]:
    """Return the recipe of every step by its name, or an empty dict if `steps` is invalid, which `fit` reports.

    A step is a kind, a recipe, or a pair of a name and one of these. The default name is the kind. Repeated names get
    numbers, `fourier-1` and `fourier-2`, as in `make_pipeline`.
    """
    if isinstance(steps, str | Mapping):
        steps = [steps]
    if not isinstance(steps, list | tuple):
        return {}
    entries = [_pair(entry) for entry in steps]
    pairs = [pair for pair in entries if pair is not None]
    counts, met = Counter(name for name, _ in pairs), Counter[str]()
    result: dict[str, Recipe] = {}
    for name, recipe in pairs:
        met[name] += 1
        result[name if counts[name] == 1 else f"{name}-{met[name]}"] = recipe
    return result if len(pairs) == len(entries) else {}


def _pair(entry: object) -> tuple[str, Recipe] | None:
    if isinstance(entry, str):
        return entry, {"kind": entry}
    if isinstance(entry, Mapping):
        return str(entry.get("kind")), dict(entry)
    if isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], str):
        inner = _pair(entry[1]) if isinstance(entry[1], str | Mapping) else None
        return None if inner is None else (entry[0], inner[1])
    return None


def parameters(steps: object) -> dict[str, Any]:
    """Return `name` → recipe and `name__parameter` → value for every step, with defaults."""
    parameters: dict[str, Any] = {}
    for name, recipe in named(steps).items():
        parameters[name] = recipe
        kind = recipe.get("kind")
        fields = step_class(kind).model_fields if kind in kinds() else {}
        defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
        own = {key: value for key, value in recipe.items() if key != "kind"}
        parameters |= {f"{name}__{key}": value for key, value in (defaults | own).items()}
    return parameters


def changed(steps: object, changes: Mapping[str, Any]) -> list[tuple[str, Recipe]]:
    """Return the steps with some recipes (`name`) and parameters (`name__parameter`) replaced."""
    recipes = named(steps)
    for key in sorted(changes, key=lambda key: "__" in key):
        name, _, parameter = key.partition("__")
        if parameter:
            recipes[name] = {**recipes[name], parameter: changes[key]}
        else:
            recipes[name] = changes[key]
    return list(recipes.items())


def recipes_of(steps: object, taken: Sequence[str]) -> list[Any]:
    """Return the steps as in a config. Refuse a name in `taken`, or one with two underscores."""
    for i, entry in enumerate(steps if isinstance(steps, list | tuple) else [steps] * hasattr(steps, "fit")):
        if _pair(entry) is None:
            found = entry[1] if isinstance(entry, list | tuple) and len(entry) == 2 else entry
            raise UsageError(
                f"steps[{i}]: expected a kind or a recipe, got {spell(found)}: put transformers of scikit-learn into a "
                "pipeline, as in make_pipeline(StandardScaler(), FeatureMap(…))"
            )
    recipes = named(steps)
    odd = next(filter(_is_no_step, recipes.values()), None)
    if not recipes or odd is not None:
        got = steps if odd is None else odd["kind"] if "steps" not in odd else odd
        raise UsageError(
            f"steps: expected a kind, a recipe, or a list of them, got {spell(got)}: a config or its path is given as "
            "config=…; a model is fitted already, and kafeat.load reads it"
        )
    for name in recipes:
        if name in taken or "__" in name:
            raise UsageError(
                f"steps: expected names that are not parameters and do not contain '__', got {name!r:.100}: "
                "give the step another name, as in [('name', {'kind': …})]"
            )
    return list(recipes.values())


def _is_no_step(recipe: Recipe) -> bool:
    """Return true for a whole config, and for a path in place of a kind."""
    kind = recipe.get("kind")
    return "steps" in recipe or (isinstance(kind, str) and not kind.isidentifier())


def plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, which are common in parameter grids, to builtins."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def seed_of(random_state: Any) -> Any:
    """Return the seed for a `random_state`. A RandomState is not advanced, so it gives the same seed again."""
    if not isinstance(random_state, np.random.RandomState):
        return plain(random_state)
    copy = np.random.RandomState()
    copy.set_state(random_state.get_state())
    return int(copy.randint(2**31 - 1))


def hinted(kind: type[R]) -> type[R]:
    """Make an estimator's TypeError about an unknown keyword explain where parameters of steps belong."""
    estimator: Any = kind
    made = estimator.__init__

    @wraps(made)  # scikit-learn reads the parameters of an estimator from this signature
    def with_hint(self: Any, *args: Any, **params: Any) -> None:
        try:
            made(self, *args, **params)
        except TypeError as error:
            remedy = "parameters of a step belong to its recipe: {'kind': 'nystroem', 'n_components': 64}"
            raise TypeError(f"{type(self).__name__}: {str(error).partition('() ')[2]}; {remedy}") from None

    estimator.__init__ = with_hint
    return kind


@dataclass(eq=False, repr=False)
class MapEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that consists of the steps of a config. Its fields are the parameters."""

    _default_steps: ClassVar[Any] = {"kind": "nystroem"}

    steps: Any = None
    _: KW_ONLY
    config: Any = None
    seed: int = 0
    dtype: str | None = None
    fit_rows: int | str = 100_000
    chunk_rows: int = 8192
    n_jobs: int | None = None
    random_state: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, also `name` and `name__parameter` of every step."""
        own: dict[str, Any] = super().get_params(deep=False)
        return {**parameters(self._steps), **own} if deep and self.config is None else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters: `name` sets a whole step, `name__parameter` one of its parameters."""
        own = set(self._get_param_names())
        super().set_params(**{name: value for name, value in params.items() if name in own})
        of_steps = {name: value for name, value in params.items() if name not in own}
        known = self.get_params()
        for name in of_steps:
            step, _, parameter = name.partition("__")
            # A parameter that is set together with its step may belong to another kind, so `fit` checks it.
            if name not in known and not (parameter and step in known and step in of_steps):
                raise ParametersRefusedError(
                    f"Invalid parameter {name!r} for {self}. Valid parameters are: {sorted(known)}."
                )
        if of_steps:
            self.steps = changed(self._steps, of_steps)
        return self

    @property
    def _steps(self) -> Any:
        return self._default_steps if self.steps is None else self.steps

    def _config(self) -> Config:
        """Return the config of these parameters; its default dtype is float64. `ConfigError` lists all mistakes."""
        own = self.get_params(deep=False)
        if self.config is None:
            given = {name: own[name] for name in ("fit_rows", "chunk_rows")}
            given["seed"] = self.seed if self.random_state is None else seed_of(self.random_state)
            given["dtype"] = "float64" if self.dtype is None else self.dtype
            return load_config(plain({**given, "steps": recipes_of(self._steps, list(own))}))
        defaults = type(self)().get_params(deep=False)
        repeated = [
            name
            for name in ("steps", "seed", "dtype", "fit_rows", "chunk_rows")
            if own[name] is not defaults[name] and own[name] != defaults[name]
        ]
        if repeated:
            raise UsageError(
                f"config: expected it without {', '.join(repeated)}, which the config sets, got both"
            )
        config = load_config(self.config)
        if self.random_state is None:
            return config
        seed = type(self)(random_state=self.random_state)._config().seed
        return config.model_copy(update={"seed": seed})

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        with as_value_errors():
            config = self._config()
            if groups is not None:
                config = config.model_copy(update={"split_by": GROUPS_BESIDE})
        source = self._source(X, config, reset=True)
        config = self._with_landmarks_of(self._with_dtype(config, source), source.rows)
        with as_value_errors(source.rows):
            labels, jobs = self._labels(y, config), joblib.effective_n_jobs(self.n_jobs)
            listener = Listener(warn=partial(warnings.warn, category=KafeatWarning, stacklevel=2))
            intervals = getattr(self, "intervals", False)
            weight = None if sample_weight is None else _WEIGHT
            rows = beside(source, sample_weight, groups)
            fm = fit_reader(
                config, rows, labels, weight=weight, jobs=jobs, listener=listener, intervals=intervals
            )
        if groups is not None:  # tables that come later lack the column of groups
            fm = replace(fm, config=fm.config.model_copy(update={"split_by": None}))
        self._map: FittedMap = fm
        return self

    def _labels(self, y: Any, config: Config) -> Array | None:
        """Return the labels to fit this config with, or None if the config uses no labels. Subclasses check `y`."""
        return y

    @property
    def feature_map_(self) -> FittedMap:
        """The fitted map."""
        self._check_fitted()
        return self._map

    def _made(self, make: Callable[..., R], X: Any, **options: Any) -> R:
        """Call a method of the fitted map for rows X (n, d), and return its result."""
        fm = self.feature_map_
        source = self._source(X, fm.config, reset=False)
        with as_value_errors():
            return make(fm, source, jobs=joblib.effective_n_jobs(self.n_jobs), **options)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():  # first, since scikit-learn's check is slow
            check_is_fitted(self)

    def _with_dtype(self, config: Config, source: Reader) -> Config:
        """Set the dtype to that of the rows if no dtype was given."""
        single = source.fields[0].spelled.endswith("float32")
        kept = self.config is None and self.dtype is None and single
        return config.model_copy(update={"dtype": "float32"}) if kept else config

    def _with_landmarks_of(self, config: Config, n_rows: int | None) -> Config:
        """Use at most as many landmarks as there are rows. If the user asked for more, warn as scikit-learn does."""
        sizes = [size for size in (n_rows, config.fit_rows) if isinstance(size, int)]
        recipes = [step.recipe(live=True) for step in config.steps]
        if not sizes or limit_landmarks(recipes, min(sizes)) is None:
            return config
        own = [{"kind": step.kind, **step.model_dump(include=step.model_fields_set)} for step in config.steps]
        asked = limit_landmarks(own, min(sizes))
        if asked is not None:
            warnings.warn(
                f"nystroem: expected at least as many rows as landmarks ({asked:,}), got {min(sizes):,}: n_components "
                "is lowered to the number of rows",
                KafeatWarning,
                stacklevel=4,
            )
        return config.model_copy(update={"steps": tuple(build_step(recipe) for recipe in recipes)})

    def _source(self, X: Any, config: Config, reset: bool) -> Reader:
        """Return a reader of the rows, after scikit-learn's checks of shape, names and values."""
        reads_columns = any(step.traits.columns.named for step in config.map_steps)
        if reads_columns and hasattr(X, "__arrow_c_stream__"):
            checked_rows(self, X, reset=reset, skip_check_array=True)
            with as_value_errors():
                return reader_of(X)
        finite = "allow-nan" if takes_missing(step.traits for step in config.map_steps) else True
        of, sparse = self if reset else self._with_tags_of(config), False if reads_columns else "csr"
        rows = checked_rows(of, X, reset=reset, ensure_all_finite=finite, accept_sparse=sparse)
        # Times make objects of a pandas frame. Other frames turn times into numbers, so their types are checked here.
        if rows.dtype == object or not hasattr(X, "iloc"):
            with as_value_errors():
                _refuse_other_columns(X)
        names = getattr(self, "feature_names_in_", None)
        if issparse(rows) or names is None:
            return reader_of(rows)
        return reader_of(X) if rows.dtype == object else NamedReader(rows, [str(name) for name in names])

    def _with_tags_of(self, config: Config) -> Self:
        """Return a view of the estimator with tags of this config: loading a config takes longer than a transform."""
        view = object.__new__(type(self))
        view.__dict__.update(vars(self), _checked=config)
        return view

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            config = vars(self).get("_checked") or self._config()
        except KafeatError:  # `fit` reports the error
            return tags
        tags.input_tags.allow_nan = takes_missing(step.traits for step in config.map_steps)
        reads_columns = any(step.traits.columns.named for step in config.map_steps)
        tags.input_tags.string = tags.input_tags.categorical = reads_columns
        tags.input_tags.sparse = not reads_columns
        tags.input_tags.positive_only = config.map_steps[0].traits.numbers.refuses_negative
        tags.target_tags.required = config.needs_label
        return tags


class NamedFeatures(ClassNamePrefixFeaturesOutMixin):  # type: ignore[misc]  # scikit-learn has no types
    """The number and the names of the features of an estimator with a `feature_map_`."""

    @property
    def _n_features_out(self) -> int:
        return int(self.feature_map_.n_components)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return `income` or `city_Rome` for features that are made from one column, otherwise numbered names."""
        numbered: Array = super().get_feature_names_out(input_features)
        columns, sources = self.feature_map_.columns, sources_of(self.feature_map_.chain.steps)
        if sources is None:
            return numbered
        inputs = [name for name, _ in columns.inputs]
        categories = [columns.categories.get(name, ()) for name in inputs]
        if not hasattr(self, "feature_names_in_"):  # inputs are then c0, c1, …
            inputs = [
                f"x{name[1:]}" if input_features is None else input_features[int(name[1:])] for name in inputs
            ]
        names, counts, met = list[str](), Counter(sources.tolist()), Counter[int]()
        for source in sources.tolist():
            of_categories = len(categories[source]) == counts[source]
            last = categories[source][met[source]] if of_categories else met[source]
            names.append(
                f"{inputs[source]}_{last}" if of_categories or counts[source] > 1 else inputs[source]
            )
            met[source] += 1
        return np.array(names, dtype=object) if len({*names}) == len(names) else numbered


def beside(source: Reader, sample_weight: Any = None, groups: Any = None) -> Reader:
    """Return a reader that adds a column for `sample_weight` (n,) and one for `groups` (n,), unless they are None."""
    try:
        given = {
            name: column_or_1d(check_array(values, ensure_2d=False, dtype=dtype, input_name=name.strip("<>")))
            for name, values, dtype in ((_WEIGHT, sample_weight, np.float64), (_GROUPS, groups, None))
            if values is not None
        }
    except ValueError as error:
        raise DataError(str(error)) from error
    for name, values in given.items():
        if len(values) != source.rows:
            raise UsageError(
                f"{name.strip('<>')}: expected one for each of {source.rows} rows, got {len(values)}"
            )
    if _WEIGHT in given and not given[_WEIGHT].any():
        raise UsageError("sample_weight: expected a weight above 0, got only zeros")
    return WiderReader(source, given) if given else source


def checked_rows(estimator: Any, X: Any, **checks: Any) -> Any:
    """Return rows X (n, d) after scikit-learn's checks of shape, names and values."""
    try:
        return validate_data(estimator, X, **checks)
    except (TypeError, ValueError, NotImplementedError) as error:
        if "skip_check_array" not in checks:
            with as_value_errors():
                _refuse_other_columns(X)
        if not isinstance(error, ValueError):
            raise
        raise ValuesRefusedError(_explained(error, X)) from error


def _refuse_other_columns(X: Any) -> None:
    """Refuse a data frame with a column that is not numeric. Scikit-learn's errors would not name the column."""
    if not hasattr(X, "__arrow_c_stream__"):
        return
    reader = reader_of(X)
    for field in reader.fields:
        if field.kind != "number" and field.name not in reader.row_names:
            kind = "date" if field.kind == "timestamp" else field.kind
            raise DataError(
                f"column {quoted(field.name)}: expected numbers, got {'text' if kind == 'text' else field.spelled}: "
                f"{_REMEDIES.get(kind, 'convert it to numbers, or leave it out')}"
            )


def _explained(error: Exception, X: Any) -> str:
    """Return the message of an error from scikit-learn's checks, with the place in X (n, d) and a remedy if known."""
    message = str(error)
    found = None if issparse(X) else _WRONG.match(message)
    if found is None:
        return message
    if found["text"]:
        row, column = next(at for at, cell in np.ndenumerate(np.asarray(X)) if repr(cell) == found["text"])
        got = f"{found['text']}; text needs a data frame, and a one_hot step that names the column"
    else:
        missing = "NaN" in message
        values = check_array(X, ensure_all_finite=False)
        row, column = np.argwhere((np.isnan if missing else np.isinf)(values))[0]
        got = f"{values[row, column]}{'; impute as the first step fills in missing values' * missing}"
    name = quoted(str(X.columns[column])) if hasattr(X, "columns") else column
    return f"{found[0]}: {spell_row(row)}, column {name}: expected a finite number, got {got}"


def checked_labels(y: Any, classes: bool = False) -> Array:
    """Return checked labels (n,), or numbers (n, k). With `classes`, refuse (n, k) and numbers with fractions."""
    if y is None:
        raise UsageError("y: expected labels (requires y to be passed, but the target y is None)")
    try:
        labels: Array = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if classes or labels.ndim == 1 or labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=classes)
        if classes:
            check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        try:
            check_label_array(np.asarray(y), len(y))
        except DataError as found:
            raise DataError(f"{str(error).rstrip('.')}: {found}; leave out rows without a label") from error
        got = str(error).partition(". ")[0]
        numbers = got.startswith("Unknown label type")
        raise DataError(
            f"y: expected classes, got numbers ({got}): use FeatureMapRegressor" if numbers else f"y: {error}"
        ) from error
    return labels


class ValuesRefusedError(DataError, ValueError):
    """Rows that a map cannot be fitted on or cannot transform."""


class ParametersRefusedError(UsageError, ValueError):
    """Parameters that do not define a map."""


@contextmanager
def as_value_errors(rows: int | None = None) -> Iterator[None]:
    """Convert kafeat's errors to errors that are also ValueErrors. If `rows` is 1, messages mention it."""
    try:
        yield
    except UsageError as error:
        raise ParametersRefusedError(str(error)) from error
    except DataError as error:
        alone = " (n_samples = 1)" if rows == 1 else ""
        # words that scikit-learn's checks look for
        negative = "Negative values in data: " if _NEGATIVE.search(str(error)) else ""
        raise ValuesRefusedError(f"{negative}{error}{alone}") from error
