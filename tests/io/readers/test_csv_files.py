"""Delimiters, encodings and the line `sep=;` are found, told or refused, and the model records them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location

CONFIG = {"dtype": "float64", "steps": [{"kind": "impute", "strategy": "constant", "value": -1.0}]}
ROWS = [("1.5", "a, b", "3"), ("2.5", "c", "4"), ("-1", "d; e|f", "5")]


def opened(path: Path, **options: object):
    return InputOptions(**options).open(parse_location(path))  # type: ignore[arg-type]


def names(path: Path, **options: object) -> list[str]:
    with opened(path, **options) as source:
        return [field.name for field in source.fields]


def written(folder: Path, text: str | bytes, name: str = "x.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def features(fm: kafeat.FeatureMap, path: Path, **options: object) -> list[list[float]]:
    kafeat.transform(path, path.with_suffix(".npy"), model=fm, jobs=1, **options)
    return np.load(path.with_suffix(".npy")).tolist()


@pytest.mark.sampled
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_delimiter_is_found_and_the_model_knows_it(tmp_path: Path, mark: str, end: str, bom: str) -> None:
    lines = [mark.join(("n", "words", "m")), *(mark.join((n, f'"{text}"', m)) for n, text, m in ROWS)]
    path = written(tmp_path, bom + end.join([*lines, ""]))
    assert names(path) == ["n", "words", "m"]
    fm = kafeat.fit(CONFIG, path)
    expected = pd.read_csv(path, sep=mark, encoding="utf-8-sig")[["n", "m"]].to_numpy().tolist()
    assert features(fm, path) == expected
    recorded = fm.columns.to_plain()["dialect"].get("file")
    assert recorded == (None if mark == "," else [mark, "utf-8"])
    assert Columns.from_plain(fm.columns.to_plain()) == fm.columns
    # One column of the model, alone in a row: only the model tells the delimiter.
    other = written(tmp_path, f"n{mark}m\n7{mark}8\n9\n", "y.csv")
    with pytest.raises(DataError, match=r"y\.csv: row 2 \(index 1\): expected 2 fields, got 1"):
        features(fm, other)
    assert features(fm, other, on_bad_rows="drop") == [[7.0, 8.0]]


def test_what_is_told_or_the_usual_holds(tmp_path: Path) -> None:
    assert names(written(tmp_path, "a;b\n1;2\n"), delimiter=",") == ["a;b"]
    assert names(written(tmp_path, "a;b\n1;2;3\n")) == ["a;b"]
    assert names(written(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n")) == ["a", "b"]
    assert names(written(tmp_path, "a;b\n")) == ["a", "b"]
    assert names(written(tmp_path, "a,b|c,d\n1,2,3\n4,x|y,6\n")) == ["a", "b|c", "d"]
    assert names(written(tmp_path, "words\na;b\nc\n")) == ["words"]
    assert names(written(tmp_path, 'a;"b;c"\n1;"2;3"\n')) == ["a", "b;c"]
    assert names(written(tmp_path, "a,b\n1,2\n", "x.tsv")) == ["a", "b"]
    assert names(written(tmp_path, "1;2\n3;4\n"), no_header=True) == ["c0", "c1"]


def test_two_delimiters_are_refused_with_both(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b;c\n1,5;2\n")
    remedy = r"expected one delimiter, got ',' and ';', each of .* --delimiter , or --delimiter ';'"
    with pytest.raises(DataError, match=remedy):
        names(path)
    assert names(path, delimiter=";") == ["a,b", "c"]
    assert names(path, delimiter=",") == ["a", "b;c"]


@pytest.mark.parametrize("start", ["sep=;\r\n", "\ufeffsep=;\n", '"sep=;"\n'])
def test_the_line_of_excel_is_no_row(tmp_path: Path, start: str) -> None:
    path = written(tmp_path, f"{start}n;m\r\n1,5;2\r\n2,5;3\r\n")
    fm = kafeat.fit(CONFIG, path)
    assert features(fm, path) == [[1.5, 2.0], [2.5, 3.0]]
    assert names(path, delimiter=";") == ["n", "m"]
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'm': expected a number, got 'x'"):
        features(fm, written(tmp_path, f"{start}n;m\n1,5;2\n2;x\n", "y.csv"))


@pytest.mark.sampled
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "cp1251"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.usefixtures("short_look")
def test_an_encoding_is_read_and_recorded(tmp_path: Path, encoding: str, packed: bool) -> None:
    word = "Жара" if encoding == "cp1251" else "Wärme"
    text = f"{word};m\n" + "".join(f"{i},5 °C;{i % 7}\n" for i in range(2000))
    data = text.encode(encoding)
    path = written(tmp_path, gzip.compress(data) if packed else data, "x.csv.gz" if packed else "x.csv")
    fm = kafeat.fit(CONFIG, path, reading=InputOptions(encoding=encoding))
    assert fm.columns.names == (word, "m")
    expected = [[i + 0.5, i % 7] for i in range(2000)]
    assert features(fm, path) == expected
    assert Columns.from_plain(fm.columns.to_plain()) == fm.columns


def test_bytes_that_are_not_utf8_name_the_encoding(tmp_path: Path) -> None:
    for word, name in (("12 €", "cp1252"), ("Wärme", "latin-1")):
        path = written(tmp_path, f"n,c\n1,{word}\n2,{word}\n", encoding="cp1252")
        step = {"kind": "one_hot", "columns": ["c"]}
        told = rf"line 2, byte \d+: expected UTF-8 text, got b.*; --encoding {name} reads"
        with pytest.raises(DataError, match=told):
            kafeat.fit({"steps": [step]}, path)
        fm = kafeat.fit({"steps": [step]}, path, reading=InputOptions(encoding=name))
        assert fm.n_features_in == 2
    path = written(tmp_path, b"n,c\n1,\x81\n")
    with pytest.raises(DataError, match=r"expected text in cp1252, got: .*; --encoding latin-1 reads it"):
        names(path, encoding="cp1252")
    assert names(path, encoding="latin-1") == ["n", "c"]
    path = written(tmp_path, "n,c\n1,2\n", encoding="utf-16")
    with pytest.raises(DataError, match=r"or like UTF-16 \(--encoding utf-16 reads it\)"):
        names(path)
    assert names(path, encoding="utf-16") == ["n", "c"]


@pytest.mark.parametrize(
    ("fitted_in", "asked", "written_in"),
    [("utf-16", None, "utf-8"), ("utf-16-le", None, "utf-8"), ("utf-16", None, "utf-16-le"), ("utf-16", None, "cp1252"),
     ("cp1252", None, "utf-8"), ("utf-8", None, "utf-16"), ("utf-8", "latin-1", "utf-8"),
     ("utf-8", "latin-1", "cp1252")],
)  # fmt: skip
def test_an_encoding_that_is_named_reads_the_rows(tmp_path, fitted_in, asked, written_in):
    text = "Größe;y\n1.5;Köln €“\n2.5;Nürnberg”\n"
    model = kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["y"]}]}, written(tmp_path, text, encoding=fitted_in),
                       reading=InputOptions(encoding=fitted_in))  # fmt: skip
    path = written(tmp_path, text, encoding=written_in)
    fitted = model.columns.file_dialect
    with pytest.raises(DataError, match=r"--encoding \S+ reads") as told:
        InputOptions(encoding=asked).open(parse_location(path), fitted=fitted)
    name = re.search(r"--encoding (\S+) reads", str(told.value))[1]
    with InputOptions(encoding=name).open(parse_location(path), fitted=fitted) as source:
        assert list(source.first_texts("y")) == ["Köln €“", "Nürnberg”"]


@pytest.mark.parametrize("name", ["klingon", "", "rot13", "base64", "../x"])
def test_other_encodings_are_refused(tmp_path: Path, name: str) -> None:
    told = "--encoding: expected utf-8, cp1252, latin-1, utf-16 or another encoding"
    with pytest.raises(UsageError, match=told):
        names(written(tmp_path, "n,c\n1,2\n"), encoding=name)


@pytest.mark.parametrize("file", [[";"], [";;", "utf-8"], [";", "klingon"], [";", 5], {"a": 1}, None])
def test_a_file_of_a_model_that_is_none_is_refused(tmp_path: Path, file: object) -> None:
    plain = kafeat.fit(CONFIG, written(tmp_path, "n;m\n1;2\n")).columns.to_plain()
    plain["dialect"]["file"] = file
    with pytest.raises(ValueError, match=r"columns\.dialect\.file: expected|not enough values"):
        Columns.from_plain(plain)


def test_missing_numbers_of_mysql(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,\\N\n\\N,3\n5,4\n7,8\n")
    fm = kafeat.fit(CONFIG, path)
    assert features(fm, path) == [[1.0, -1.0], [-1.0, 3.0], [5.0, 4.0], [7.0, 8.0]]
    with pytest.raises(DataError, match=r"got '\\\\N'; .*; --null-values '\\N' --null-values NA reads"):
        kafeat.fit(CONFIG, path, reading=InputOptions(null_values=("NA",)))


def test_the_parts_of_a_data_set_are_read_as_the_model_says(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for i in range(2):
        written(folder, f"n °;m\n{i},5 €;3\n2,5 €;4\n", f"{i}.csv", "cp1252")
    fm = kafeat.fit(CONFIG, folder, reading=InputOptions(encoding="cp1252"))
    kafeat.transform(folder, out, model=fm, output_format="npy", jobs=1)
    assert [np.load(out / f"{i}.npy").tolist() for i in range(2)] == [
        [[i + 0.5, 3.0], [2.5, 4.0]] for i in range(2)
    ]
