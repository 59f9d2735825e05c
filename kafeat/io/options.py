"""The options for reading, and how an option is declared.

The command line imports this file for its help, so it imports nothing that is slow.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from kafeat.errors import UsageError
from kafeat.io.formats import FORMATS, INPUTS, delimiter_of, format_of, format_of_stream, imported, spelled
from kafeat.io.storage.base import Location, StandardStream

if TYPE_CHECKING:
    from kafeat.io.readers.base import Reader


@dataclass(frozen=True, kw_only=True)
class Option:
    """Help, group, range and choices of an option; its field holds the name, the type and the default.

    Attributes:
        help: Its meaning, in the help of the command.
        python: Its meaning as a keyword, if that is another text.
        group: Heading of the help that it stands below; None for the first.
        names: Names on the command line; none gives `--` and the name of the field.
        metavar: Placeholder of the value in the help.
        choices: The values that it takes; none leaves this to the type.
        least, most: Bounds of a number; None for none.
        variable: True lets an environment variable set it.
    """

    help: str
    python: str | None = None
    group: str | None = None
    names: tuple[str, ...] = ()
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float = 1
    most: float | None = None
    variable: bool = True


def option(default: Any, help: str, **more: Any) -> Any:
    """Return a field of a dataclass that is an option."""
    return field(default=default, metadata={"option": Option(help=help, **more)})


def declared(options: type[Any]) -> list[tuple[Field[Any], Option]]:
    """Return the fields that are options, and what they say."""
    return [(one, one.metadata["option"]) for one in fields(options) if "option" in one.metadata]


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Options for reading a file, or the files of a data set."""

    input_format: str | None = option(
        None, "Format of the input (default: by the suffix; stdin is CSV or Arrow, whichever its first bytes show).",
        group="Input", choices=INPUTS,
    )  # fmt: skip
    delimiter: str = option(
        ",", "Delimiter of a CSV input (default: a comma); tab for tabs.", group="Input", metavar="CHAR"
    )
    no_header: bool = option(
        False, "The CSV input has no header. Its columns are named c0, c1, …", group="Input"
    )
    limit: int | None = option(
        None, "Read only the first N rows, for a trial.", group="Input", metavar="N", variable=False
    )

    def open(self, place: Location, stamp: str | None = None) -> Reader:
        """Open a file or a data set; a file whose stamp is no longer `stamp` is refused."""
        from kafeat.io.data_set import is_data_set, list_parts

        if is_data_set(place):
            from kafeat.io.readers.dataset import DatasetReader

            parts = list_parts(place, self.input_format).parts
            opened: Reader = DatasetReader(str(place), parts, self.open_file)
        else:
            opened = self.open_file(place, stamp)
        return opened if self.limit is None else opened.limited(self.limit)

    def open_file(self, place: Location, stamp: str | None = None) -> Reader:
        """Open a file, an object or standard input, with all rows. Arrow on standard input is recognised.

        `stamp` is the stamp of the file when it was listed. Without it, the file must not change from now on.
        """
        if stamp is None:
            entry = place.entry()
            stamp = None if entry is None else entry.stamp
        reader = self._reader(place)
        reader.origin = None if stamp is None else (place, stamp)
        return reader

    def _reader(self, place: Location) -> Reader:
        format = format_of(place, self.input_format, INPUTS)
        if not format.reader:
            raise UsageError(
                f"{place}: expected an input format of {', '.join(INPUTS)}, got {format.name}: it is written only"
            )
        options: dict[str, Any] = {}
        if isinstance(place, StandardStream):
            if not format.piped:
                piped = spelled(one.title for one in FORMATS.values() if one.piped and one.reader)
                raise UsageError(
                    f"-: expected {piped} on standard input, got {format.name}: it cannot be piped"
                )
            if self.input_format is None:
                from kafeat.io.readers.text_stream import HashingStream

                options["raw"] = HashingStream(place)
                format = format_of_stream(options["raw"].magic)
        if format.delimited:
            options |= {"delimiter": delimiter_of(place, self.delimiter), "header": not self.no_header}
        reader: Reader = imported(format.reader)(place, **options)
        return reader
