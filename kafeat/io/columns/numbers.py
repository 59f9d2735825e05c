"""Convert Arrow columns to float64. All formats use this code, so that they agree to the bit.

A value that is not a number becomes NaN. `spell_problem` describes it afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.io.columns.dialect import USUAL, Dialect
from kafeat.io.columns.fields import ANYWHERE, Cells, Field, Kind
from kafeat.io.columns.number_forms import missed, remedy
from kafeat.types import Array, Floats, Mask

NOT_FINITE = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)

Doubles = npt.NDArray[np.float64]


def far_ends(known: Floats, marks: Collection[float] = ()) -> list[float]:
    """Return the minimum if it repeats and lies far from all other values, and likewise the maximum.

    If `marks` is not empty, the result only has numbers that are also in `marks`.
    """
    ends = {float(known.min()), float(known.max())} if len(known) else set[float]()
    ends &= {*marks} if marks else ends
    # Halves, so that differences do not overflow.
    others = known[~np.isin(known, [*(marks or ends)])] / 2.0 if ends else known[:0]
    spread = np.ptp(others) if len(others) else 0.0
    distances = {end: np.abs(others - end / 2.0).min(initial=np.inf) for end in ends}
    return [end for end in ends if (known == end).sum() > 1 and distances[end] > spread > 0.0]


def storage_of(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which values are stored, such as a list for a tensor of fixed shape."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def is_number(kind: pa.DataType) -> bool:
    """Return true if values of the type are read as numbers."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def is_text(kind: pa.DataType) -> bool:
    """Return true if values of the type are text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return true if values of the type are lists of numbers."""
    lists = (pa.types.is_fixed_size_list(kind), pa.types.is_list(kind), pa.types.is_large_list(kind))
    return any(lists) and is_number(kind.value_type)


def field_from(field: pa.Field, width: int | None) -> Field:
    """Return the field for an Arrow field. `width` is the length of lists whose type does not state it."""
    kind = storage_of(field.type)
    if is_number(kind):
        return Field(field.name, "number", None, str(kind))
    if is_list(kind):
        fixed = kind.list_size if pa.types.is_fixed_size_list(kind) else width
        if fixed != 0:
            return Field(field.name, "list", fixed, str(kind))
    of_values = kind.value_type if pa.types.is_dictionary(kind) else kind
    timestamp: Kind = "timestamp" if pa.types.is_timestamp(of_values) else "other"
    other: Kind = "date" if pa.types.is_date(of_values) else timestamp
    zone = (of_values.tz or "") if timestamp == "timestamp" else ""
    return Field(field.name, "text" if is_text(kind) else other, None, str(kind), zone=zone)


def to_doubles(values: pa.Array, dialect: Dialect = USUAL) -> Doubles:
    """Return the values as float64, correctly rounded, with NaN for values that are missing or not numbers."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        table = np.append(to_doubles(values.dictionary, dialect), np.nan)
        return cast(Doubles, table[indices_of(values, len(table) - 1)])
    if is_text(kind):
        return _text_to_doubles(values, dialect)
    if pa.types.is_decimal(kind):
        # A cast from decimal to double may miss the nearest double. A cast from text does not.
        values = values.cast(pa.string())
        return _plain(values.cast(pa.float64()))
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    return _plain(values)


def to_numbers(values: pa.Array, dialect: Dialect = USUAL) -> Array:
    """Return the values in their stored type if NumPy has it and all are numbers, and as float64 if not."""
    kind = values.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return stored(values) if plain and not values.null_count else to_doubles(values, dialect)


def _plain(values: pa.Array) -> Doubles:
    numbers = stored(values).astype(np.float64, copy=False)
    if values.null_count:
        numbers = np.where(valid(values), numbers, np.nan)
    return numbers


def _text_to_doubles(values: pa.Array, dialect: Dialect) -> Doubles:
    if dialect.plain:
        with suppress(pa.ArrowInvalid):
            return _plain(values.cast(pa.float64()))
    import pyarrow.compute as pc  # slow to import, and most files hold numbers only

    words = without_nulls(values, dialect)
    text = with_points(words, dialect)
    if dialect.bare or not dialect.units:
        lower = pc.utf8_lower(words)
        text = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    with suppress(pa.ArrowInvalid):
        return _plain(text.cast(pa.float64()))
    return np.array([_one(value) for value in text.to_pylist()], dtype=np.float64)


def doubles(values: Sequence[str]) -> Doubles | None:
    """Return texts as numbers if Arrow reads all of them as finite numbers, and None if not."""
    with suppress(pa.ArrowInvalid):
        numbers = stored(pa.array(values, pa.string()).cast(pa.float64()))
        return numbers if np.isfinite(numbers).all() else None
    return None


def first_no_number(values: Sequence[str], dialect: Dialect) -> str:
    """Return the first text that is neither a number of the dialect nor missing, or an empty text."""
    odd = np.flatnonzero(np.isnan(to_doubles(pa.array(values, pa.string()), dialect)))
    return next((values[row].strip() for row in odd.tolist() if not dialect.is_missing(values[row])), "")


def without_nulls(values: pa.Array, dialect: Dialect) -> pa.Array:
    """Return text without surrounding spaces, with null for words that stand for missing values."""
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(values)
    words = pa.array(sorted(dialect.null_words), text.type)
    return pc.if_else(pc.is_in(text, value_set=words), pa.scalar(None, text.type), text)


def with_points(text: pa.Array, dialect: Dialect) -> pa.Array:
    """Rewrite numbers of the dialect as plain numbers with a decimal point. Other text stays invalid."""
    if dialect.decimal == "." and not dialect.dressed:
        return text
    import pyarrow.compute as pc

    if dialect.dressed:
        groups = "".join(f"\\{group}" for group in range(1, re.compile(dialect.forms).groups + 1))
        number = pc.replace_substring_regex(text, dialect.forms, groups)
        if dialect.thousands:
            number = pc.replace_substring_regex(number, dialect.separators, "")
        number = pc.replace_substring(number, dialect.decimal, ".")
        below = pc.match_substring_regex(
            text, r"^[^0-9]*[-−(]|[0-9][-−]" if dialect.trailing else r"^[^0-9]*[-−(]"
        )
        number = pc.if_else(below, pc.binary_join_element_wise("-", number, ""), number)
        fits = pc.match_substring_regex(text, dialect.forms)
        return pc.if_else(fits, _multiplied(pc.if_else(fits, number, None), text, dialect), "no number")
    return pc.if_else(pc.match_substring(text, "."), "no number", pc.replace_substring(text, ",", "."))


def _multiplied(numbers: pa.Array, text: pa.Array, dialect: Dialect) -> pa.Array:
    """Return numbers, as text, times the factors of the units that stand next to them in `text`."""
    if {*dialect.factors.values()} <= {1.0}:
        return numbers
    import pyarrow.compute as pc

    units = pc.replace_substring_regex(text, dialect.beside, r"\1\2")
    pairs = {
        one + other: first * second
        for one, first in {"": 1.0, **dialect.factors}.items()
        for other, second in {**dialect.factors, "": 1.0}.items()
    }
    place = pc.index_in(units, pa.array([*pairs], text.type))
    factors = pc.take(pa.array([*pairs.values()], pa.float64()), place)
    product = pc.multiply(numbers.cast(pa.float64()), factors).cast(numbers.type)
    return pc.if_else(pc.equal(factors, 1.0), numbers, product)


def _one(text: str | None) -> float:
    # Python rounds as Arrow does. But only Python accepts underscores and digits outside ASCII: such texts give NaN.
    if not text or "_" in text or not text.isascii():
        return np.nan
    with suppress(ValueError):
        return float(text)
    return np.nan


def lists_to_numbers(values: pa.Array, width: int) -> Array:
    """Return the rows of a list column as (n, width). A row that is null or of another length is all NaN."""
    fixed = pa.types.is_fixed_size_list(values.type)
    if fixed and not values.null_count:
        first = values.offset * width
        inner = values.values.slice(first, len(values) * width)
        return to_numbers(inner).reshape(len(values), width)
    import pyarrow.compute as pc

    length = pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False)
    good = length == width
    if good.all():
        return to_numbers(values.flatten()).reshape(len(values), width)
    numbers = np.full((len(values), width), np.nan)
    numbers[good] = to_doubles(values.filter(pa.array(good)).flatten()).reshape(-1, width)
    return numbers


def spell_problem(
    value: Any,
    width: int | None,
    element: int,
    dtype: np.dtype[Any],
    dialect: Dialect = USUAL,
    may_miss: bool = False,
    cells: Cells = ANYWHERE,
) -> str:
    """Return the message about an invalid cell. In a list of `width` numbers, entry `element` is invalid."""
    if width is not None:
        if value is None or len(value) != width:
            got = "null" if value is None else f"{len(value)}"
            return f"expected a list of {width} numbers, got {got}"
        value = value[element]
    if isinstance(value, str):
        number, word = float(to_doubles(pa.array([value]), dialect)[0]), value.strip()
        special = NOT_FINITE.fullmatch(word) is not None
        if word in dialect.null_words and word and not special:
            return f"expected a finite number, got {word[:60]!r}, which stands for a missing value"
        if word and np.isnan(number) and not special:
            return f"expected a number, got {value[:60]!r}{remedy(word, dialect, may_miss, cells)}"
        if may_miss and "inf" in word.casefold():
            return f"expected a finite number, got {word}; {missed([word], dialect, cells)}"
        value = (word or None) if np.isnan(number) or np.isinf(number) else number
    if value is None:
        return "expected a finite number, got null"
    if not isinstance(value, str) and np.isfinite(float(value)):
        return f"expected a finite number, got {value}, which overflows {dtype.name}"
    return f"expected a finite number, got {value}"


def stored(values: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a column of integers or floats without a copy. Entries at nulls are arbitrary."""
    kind, (_, data) = values.type, values.buffers()
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    if data is None:
        return np.zeros(len(values), dtype=dtype)
    return np.frombuffer(data, dtype=dtype, count=len(values), offset=values.offset * dtype.itemsize)


def valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask (n,) that is true where a value is not null. The column must have at least one null."""
    return np.from_dlpack(values.is_valid().cast(pa.uint8())).view(np.bool_)


def indices_of(values: pa.DictionaryArray, null: int) -> npt.NDArray[np.int64]:
    """Return the codes of a dictionary column, and `null` for entries that are null."""
    codes = values.indices.cast(pa.int64())
    indices = stored(codes).copy()
    if codes.null_count:
        indices[~valid(codes)] = null
    return indices


def first_of_rows(bad: Mask) -> Iterator[tuple[int, int]]:
    """Yield row and column of the first true entry of each row that has one."""
    for row in np.flatnonzero(bad.any(axis=1)):
        yield int(row), int(bad[row].argmax())


def refused(values: pa.Array, width: int | None, numbers: Floats, dialect: Dialect) -> Mask:
    """Return a mask (n, k) of the entries of `numbers` that are invalid: neither finite nor missing in `values`."""
    infinite = np.isinf(numbers)
    if width is not None:
        import pyarrow.compute as pc  # slow to import

        # A list that is null is missing as a whole; a list of another length is invalid.
        length = pc.fill_null(pc.list_value_length(values), width).to_numpy(zero_copy_only=False)
        return infinite | (length != width)[:, None]
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if not is_text(plain.type):
        return infinite
    bad = np.isnan(numbers)
    rows = np.flatnonzero(bad[:, 0])
    for row, value in zip(rows, plain.take(pa.array(rows)).to_pylist(), strict=True):
        bad[row] = value is not None and not dialect.is_missing(value)
    return infinite | bad
