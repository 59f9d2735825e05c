"""The options for reading and writing, and how an option is declared.

The command line imports this file for its help, so it imports nothing that is slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from kafeat.errors import UsageError
from kafeat.io.formats import NAMES, delimiter_of, format_of, format_of_stream, imported, piped
from kafeat.io.storage.base import Location, StandardStream

if TYPE_CHECKING:
    from kafeat.io.columns.dialect import Asked, Dialect
    from kafeat.io.data_set import Part
    from kafeat.io.readers.base import Reader
    from kafeat.io.storage.atomic import Guard

OutputLayout: TypeAlias = Literal["columns", "list"]
Compression: TypeAlias = Literal["none", "snappy", "lz4", "zstd", "gzip"]
OutputDType: TypeAlias = Literal["float16", "float32", "float64"]
Made = TypeVar("Made")

GROUPS = ("Options", "Input", "Output", "Bad rows and drift", "Many files and clusters", "Messages")
"""Headings of the help, in their order."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """Help, group, range and choices of an option. Its field holds the name, the type and the default.

    Attributes:
        help: Its meaning, in the help of the command.
        python: Its meaning as a keyword, if the text differs.
        group: Heading in the help.
        rare: True if only `--help-all` shows it, in a command with many options.
        names: Names on the command line; by default `--` and the name of the field.
        metavar: Placeholder of the value in the help.
        use: What a text names, such as a column or an output file, for completion in a shell.
        multiple: True if it may be given several times.
        choices: The values that it accepts, or a function that returns them if they are slow to find. By default, the
            type decides.
        least, most: Bounds of a number; `most` is None if there is no upper bound.
        least_open, most_open: True if the bound itself is not allowed.
        variable: True lets an environment variable set it.
    """

    help: str
    python: str | None = None
    group: str = GROUPS[0]
    rare: bool = False
    names: tuple[str, ...] = ()
    metavar: str | None = None
    use: Literal["column", "config", "file", "model", "output", "pages"] | None = None
    multiple: bool = False
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    least: float = 1
    most: float | None = None
    least_open: bool = False
    most_open: bool = False
    variable: bool = True

    @property
    def allowed(self) -> tuple[str, ...]:
        """The values that the option accepts, or () if it accepts every value of its type."""
        return self.choices() if callable(self.choices) else self.choices

    def check(self, name: str, kind: str, value: object) -> None:
        """Raise UsageError for a value that the option does not accept. `kind` is the type of its field."""
        if self.choices:
            for one in value if self.multiple and isinstance(value, list | tuple) else (value,):
                if one not in self.allowed:
                    raise UsageError(f"{name}: expected one of {', '.join(self.allowed)}, got {one!r}")
        number = {"int": Integral, "float": Real}.get(kind)
        if number is None:
            return
        if not isinstance(value, number) or isinstance(value, bool) or not self._allows(float(value)):
            what = "a whole number" if kind == "int" else "a number"
            raise UsageError(f"{name}: expected {what} {self._range()}, got {value!r}")

    def _allows(self, number: float) -> bool:
        low = number > self.least if self.least_open else number >= self.least
        most = math.inf if self.most is None else self.most
        return math.isfinite(number) and low and (number < most if self.most_open else number <= most)

    def _range(self) -> str:
        low = f"{'above' if self.least_open else 'of at least'} {self.least:,}"
        if self.most is None:
            return low
        if self.least_open or self.most_open:
            return f"{low} and {'below' if self.most_open else 'of at most'} {self.most:,}"
        return f"from {self.least:,} to {self.most:,}"


def option(default: Any, help: str | Option, **more: Any) -> Any:
    """Return a dataclass field for an option: a new one with this help, or a copy of another with `more` changed."""
    says = replace(help, **more) if isinstance(help, Option) else Option(help=help, **more)
    return field(default=default, metadata={"option": says})


def declared(options: type[Any]) -> list[tuple[Field[Any], Option]]:
    """Return the fields that are options, with their declarations."""
    return [(one, one.metadata["option"]) for one in fields(options) if "option" in one.metadata]


def check(options: Any) -> None:
    """Raise UsageError for values that the command line would also reject."""
    for one, says in declared(type(options)):
        kind, value = str(one.type), getattr(options, one.name)
        if value is not None or not kind.endswith(" | None"):
            says.check(one.name, kind.removesuffix(" | None"), value)


def taken(options: type[Made], asked: Any, **own: Any) -> Made:
    """Make an object of a dataclass. Its fields come from `own`, or from attributes of `asked` with the same name."""
    names = [one.name for one in fields(options) if hasattr(asked, one.name)]  # type: ignore[arg-type]
    return options(**{name: getattr(asked, name) for name in names} | own)


def changed(options: Any, without: Container[str] = ()) -> dict[str, Any]:
    """Return the values that differ from their defaults, in JSON form, except options in `without`."""
    values = {one.name: (getattr(options, one.name), one.default) for one in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple | list) else value
        for name, (value, default) in values.items()
        if name not in without and value != default and not (default == () and value == [])
    }


def words_of(options: Any, *names: str) -> list[str]:
    """Return the words of a command line that set these options, except options with their defaults."""
    known, words = {one.name: (one.default, says) for one, says in declared(type(options))}, list[str]()
    for name in names:
        (default, says), value = known[name], getattr(options, name)
        option = (says.names or (f"--{name.replace('_', '-')}",))[0]
        for one in value if isinstance(value, list | tuple) else [] if value == default else [value]:
            words += [option] if one is True else [option, str(one)]
    return words


JOBS = Option(
    help="Number of threads (default: all cores). It never changes the output.",
    names=("--jobs", "-j"), metavar="N", most=4096,
)  # fmt: skip
LABEL = Option(
    help="Label column. It is not a feature. Repeatable for labels that are numbers.",
    use="column", multiple=True, metavar="COL",
)  # fmt: skip
INTERVAL = Option(
    help="Add intervals (their two ends), or sets of classes, that contain the label with probability P. "
    "Repeatable.",
    python="One or more probabilities with which intervals or sets of classes contain the label.", group="Output",
    multiple=True, metavar="P", least=0.0, most=1.0, least_open=True, most_open=True,
)  # fmt: skip
OUTPUT_DTYPE = Option(
    help="Type of the features (default: that of the map) or predictions (default: float64). A value that does not fit "
    "is an error.", group="Output", choices=("float16", "float32", "float64"),
)  # fmt: skip
CLASS_WEIGHT = Option(
    help="With balanced, all classes have the same weight for the predictor; with none, all rows (default: as in the "
    "config).",
    choices=("none", "balanced"), rare=True,
)  # fmt: skip
SPLIT_BY = Option(
    help="Hold out whole groups of a column, or the latest rows by a column of times (default: from the config, or at "
    "random).",
    metavar="group:COL|time:COL",
)  # fmt: skip
EXCLUDE = Option(
    help="Columns that are not features, separated by commas, by name or pattern (default: from the config).",
    python="Columns that are not features: names or patterns, besides those of the config.", metavar="COLS",
)  # fmt: skip
ONLY = Option(
    help="The feature columns, separated by commas, by name or pattern (default: from the config, or all).",
    python="The feature columns: names or patterns, in the place of those of the config.", metavar="COLS",
)  # fmt: skip
TASK = Option(
    help="What the label is. With auto, text and few different whole numbers are classes. With soft, several "
    "columns are the probabilities of classes.",
    choices=("auto", "classification", "regression", "soft"),
)  # fmt: skip
DROP_UNLABELLED = Option(help="Leave out rows without a label, and report how many.", rare=True)
WEIGHT = Option(
    help="Column of how often each row counts for the predictor. It is not a feature.",
    use="column", metavar="COL",
)  # fmt: skip


@contextmanager
def _of_option(name: str) -> Iterator[None]:
    """Convert ValueErrors in the block to UsageErrors that name the option."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Options for reading a file, or the files of a data set."""

    input_format: str | None = option(
        None, "Format of the input (default: by the suffix; stdin is CSV or Arrow).",
        group="Input", choices=NAMES, rare=True,
    )  # fmt: skip
    delimiter: str | None = option(
        None, "Delimiter of a CSV input; tab for tabs (default: found in the file, or that of the model).",
        group="Input", metavar="CHAR",
    )  # fmt: skip
    encoding: str | None = option(
        None, "Encoding of a CSV input, such as cp1252, latin-1 or utf-16 (default: that of the model, or utf-8).",
        group="Input", metavar="NAME", rare=True,
    )  # fmt: skip
    no_header: bool = option(
        False, "The CSV input has no header. Its columns are named c0, c1, …", group="Input"
    )
    null_values: Sequence[str] = option(
        (), "Word for a missing number or time, instead of the usual ones (NA, null, ?, - and so on). Repeatable.",
        group="Input", metavar="WORD", multiple=True, rare=True,
    )  # fmt: skip
    decimal: str | None = option(
        None, "Decimal mark of the numbers of a CSV input (default: found in each column).",
        group="Input", choices=(".", ","), rare=True,
    )  # fmt: skip
    thousands: str | None = option(
        None, "Separator of thousands in the numbers of a CSV input (default: found in each column).",
        group="Input", choices=(",", ".", "blank", "apostrophe"), rare=True,
    )  # fmt: skip
    unit: Sequence[str] = option(
        (), "Text next to numbers of a CSV input, such as € or kg (default: found in each column). "
        "K=1000 multiplies the numbers that have it. Repeatable.",
        group="Input", metavar="TEXT", multiple=True, rare=True,
    )  # fmt: skip
    date_format: Sequence[str] = option(
        (), "Form of times in text, with the letters of strftime, such as %d.%m.%Y (default: ISO 8601, or that of each "
        "column, where it is clear); %s for seconds since 1970, %Q for milliseconds. Repeatable.",
        group="Input", metavar="FORMAT", multiple=True, rare=True,
    )  # fmt: skip
    text: Sequence[str] = option(
        (), "Column that stays text though its values look like numbers or times, such as codes: by name or pattern. "
        "Repeatable.",
        group="Input", use="column", metavar="COL", multiple=True, rare=True,
    )  # fmt: skip
    limit: int | None = option(
        None, "Read only the first N rows, for a trial.", group="Input", metavar="N", variable=False
    )

    @property
    def dialect_options(self) -> dict[str, Any]:
        """The options about text, such as {"decimal": ","}, that differ from their defaults."""
        return changed(self, without=("input_format", "delimiter", "no_header", "limit"))

    @property
    def asked(self) -> Asked:
        """The options about text, parsed. Raise UsageError if one is invalid or contradicts another."""
        from kafeat.io.columns.dialect import MARKS, Asked, check_encoding, factors_of

        if self.date_format:
            from kafeat.io.columns.times import time_pattern

            with _of_option("--date-format"):
                for form in self.date_format:
                    time_pattern(form)
        words = tuple(filter(None, map(str.strip, self.null_values)))  # an empty field is missing anyway
        thousands = next((mark for mark, name in MARKS.items() if name == self.thousands), self.thousands)
        if thousands is not None and thousands == self.decimal:
            raise UsageError(f"--thousands: expected another mark than --decimal, got {thousands} for both")
        units = tuple(filter(None, map(str.strip, self.unit)))
        if any(unit != "+" and not unit.strip("+-−.,0123456789") for unit in factors_of(units)):
            raise UsageError(
                f"--unit: expected a text next to numbers, such as kg, got {' '.join(units)}, which is part of a number"
            )
        nulls = words if self.null_values else None
        asked = Asked(nulls, self.decimal, tuple(self.date_format), thousands, units, tuple(self.text))
        with _of_option("--encoding"):
            return asked if self.encoding is None else replace(asked, encoding=check_encoding(self.encoding))

    def open(
        self,
        source: Location | Part,
        stamp: str | None = None,
        seen: Sequence[str] | None = None,
        fitted: Dialect | None = None,
    ) -> Reader:
        """Open a file, a part or a data set. Raise an error if the file no longer has the stamp `stamp`.

        With `seen` (names of columns), the reader of a pipe starts as soon as these columns have values, and passes
        rows on as they arrive. `fitted` is the dialect of a model. Options and the file itself take precedence over it.
        """
        from kafeat.io.data_set import Part, is_data_set, list_parts

        if not isinstance(source, Part) and is_data_set(source):
            opened = self.open_parts(source, list_parts(source, self.input_format).parts, fitted)
        else:
            opened = self.open_file(Part.of(source, stamp), seen, fitted)
        return opened if self.limit is None else opened.limited(self.limit)

    def open_parts(self, place: Location, parts: Sequence[Part], fitted: Dialect | None = None) -> Reader:
        """Open these parts of a data set as one table. The option `limit` is not applied."""
        from kafeat.io.readers.dataset import DatasetReader

        return DatasetReader(str(place), parts, partial(self.open_file, fitted=fitted))

    def open_file(
        self, source: Location | Part, seen: Sequence[str] | None = None, fitted: Dialect | None = None
    ) -> Reader:
        """Open a file, an object or standard input without applying `limit`. Arrow on standard input is recognised."""
        from kafeat.io.data_set import Part

        part = Part.of(source)
        reader = self._reader(part.location, seen, fitted)
        reader.add_keys(part.keys)
        reader.keep_texts()
        reader.origin = (part.location, part.stamp) if part.stamp else None
        return reader

    def _reader(self, place: Location, seen: Sequence[str] | None, fitted: Dialect | None) -> Reader:
        format = format_of(place, self.input_format, "--input-format")
        options: dict[str, Any] = {}
        if isinstance(place, StandardStream):
            if not format.piped:
                raise UsageError(
                    f"-: expected {piped()} on standard input, got {format.name}: it cannot be piped"
                )
            if self.input_format is None:
                from kafeat.io.readers.text_stream import HashingStream

                options["raw"] = HashingStream(place, seen is not None)
                format = format_of_stream(options["raw"].magic)
                options["raw"].prompt &= format.text
        if format.delimited:
            usual = delimiter_of(place, fitted.delimiter if fitted else ",")
            options |= {"delimiter": self.delimiter, "usual": usual, "header": not self.no_header}
        asked = self.asked
        if format.delimited and fitted is not None and self.encoding is None:
            options["doubted"] = fitted.encoding != asked.encoding
            asked = replace(asked, encoding=fitted.encoding)
        if format.text and not format.sparse:
            options |= {"asked": asked, "seen": seen}
        reader: Reader = imported(format.reader)(place, **options)
        reader.asked = reader.asked if format.delimited else asked
        reader.format, reader.fitting = format, fitted is None
        return reader


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """Options for the output of features, which do not apply to predictions."""

    features: bool = option(
        False, "Write the features of a model that ends in a predictor, and not its predictions.", rare=True
    )
    unit_variance: bool = option(
        False, "Multiply the features by one factor, so that their mean variance is 1 and default penalties fit.",
        rare=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WritingOptions:
    """Options for writing a file of features or predictions, as the user gives them."""

    output_format: str | None = option(
        None, "Format of the output (default: by the suffix; stdout is CSV).", group="Output", choices=NAMES
    )
    layout: OutputLayout = option(
        "columns", "One column per feature, or one column of lists.",
        group="Output", rare=True, choices=get_args(OutputLayout),
    )  # fmt: skip
    prefix: str | None = option(
        None,
        "Prefix of the output column names (default: f, giving f0, f1, …; with lists: features; with predictions: "
        "none).",
        group="Output",
        rare=True,
    )
    compression: Compression | None = option(
        None,
        "Compression of Parquet, Arrow (lz4 or zstd), CSV and JSON lines (gzip or zstd; default: by the suffix).",
        rare=True, group="Output", choices=get_args(Compression),
    )  # fmt: skip
    output_dtype: OutputDType | None = option(None, OUTPUT_DTYPE)
    fsync: bool = option(
        True, "Flush the output to disk before it gets its final name (default), or leave this to the system.",
        group="Output", rare=True, names=("--fsync/--no-fsync",),
    )  # fmt: skip

    @property
    def list_name(self) -> str:
        """The name of the output column of lists."""
        return "features" if self.prefix is None else self.prefix

    def feature_names(self, width: int) -> list[str]:
        """Return the names of the feature columns."""
        prefix = "f" if self.prefix is None else self.prefix
        return [f"{prefix}{i}" for i in range(width)]


@dataclass(frozen=True, kw_only=True)
class OutputOptions(FeatureOptions, WritingOptions):
    """Options for writing a file of features or predictions: those of the base classes, and these attributes.

    Attributes:
        keep: Passthrough columns, which are copied unchanged; None copies all columns.
        overwrite: True replaces an existing file, False raises an error.
        interval: Probabilities of the intervals, or sets of classes, that accompany predictions.
        sweep: True removes temporary files that killed writers of the same file have left.
        guard: Returns a context manager in which the file gets its name. If entering it fails, the file has none.
    """

    keep: Sequence[str] | None = ()
    overwrite: bool = True
    interval: tuple[float, ...] = ()
    sweep: bool = True
    guard: Guard = nullcontext
