"""Tables as they come: words for what is missing, decimal commas, forms of dates and time zones."""

import importlib
import math
import random
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.errors import ConfigError, DataError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.dialect import NULLS, OLD, USUAL, Asked
from kafeat.io.columns.number_forms import guess_numbers, remedy
from kafeat.io.columns.time_forms import are_times, digits_form, guess_dates
from kafeat.io.columns.times import has_offset, parse_time, time_pattern
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.messages import Listener
from kafeat.model import artifact
from kafeat.model.feature_map import FeatureMap
from tests.jobs.files import transform_file
from tests.zygote import ROOT

IMPUTE = {"kind": "impute", "strategy": "constant", "value": -1.0}
NUMBERS = {"dtype": "float64", "steps": [IMPUTE]}


def date_parts(*parts: str, **more: object) -> dict[str, object]:
    step = {"kind": "date_parts", "columns": ["t"], "parts": parts or ("month", "day", "hour"), **more}
    return {"dtype": "float64", "steps": [step, IMPUTE]}


def written(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def fitted(
    config: dict[str, object], path: Path, said: list[str] | None = None, **options: object
) -> FeatureMap:
    listener = Listener(inform=(said if said is not None else []).append)
    with InputOptions(**options).open(parse_location(path)) as source:  # type: ignore[arg-type]
        return fit_reader(load_config(config), source, None, listener=listener)


def features(fm: FeatureMap, path: Path, **options: object) -> list[list[float]]:
    target = path.with_suffix(".npy")
    transform_file(fm, path, target, **options)  # type: ignore[arg-type]
    rows: list[list[float]] = np.load(target).tolist()
    return rows


@pytest.mark.parametrize(("texts", "form", "asked"), [
    ("20200131  20191201", "%Y%m%d", ""), ("20200131 1", "", ""), ("NA  ", "", ""), ("2020-01-31", "", ""),
    ("20200131235959.0 20191201000000", "%Y%m%d%H%M%S", ""), ("20200131246000", "", ""), ("202001312359",
    "%Y%m%d%H%M", ""),
    ("202001 202012 202112", "%Y%m", "%Y%m"), ("202001 202012 202113", "", ""), ("202001 202003 202002", "%Y%m",
    ""),
    ("1649448660 1649448661.5 1649448662", "%s", "%s"), ("1641297600000 1641297600001 1641297600002", "%Q", "%Q"),
    ("300000000 1649448661 1649448662", "", ""),
    ("01.2022 03.2016 12.2015", "%m.%Y", "%m.%Y"), ("02.58 10.25 20.02", "%H.%M", "%H.%M"), ("02.58 20.62", "", ""),
])  # fmt: skip
def test_texts_have_a_form_without_marks_if_all_have_it(texts, form, asked):
    words = texts.split(" ")
    assert digits_form(words, Asked()) == form
    note = f"looks like times: --date-format {asked} reads {words[0]}" if asked else ""
    assert are_times(words, Asked()) == (form in ("%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S"), note)
    assert are_times(words, Asked(dates=("%Y%m", "%s", "%Q", "%m.%Y", "%H.%M"))) == (form != "", "")


def test_seconds_and_milliseconds_are_told_apart_by_their_size(tmp_path):
    path = written(tmp_path, "t,u\n1639216034,1639216034000\n-86400,1635140904846\n")
    steps = [{"kind": "date_parts", "columns": ["t", "u"], "parts": ["year"]}]
    for forms in (["%s", "%Q"], ["%Q", "%s"]):
        fm = fitted({"dtype": "float64", "steps": steps}, path, date_format=forms)
        assert features(fm, path, date_format=forms) == [[2021.0, 2021.0], [1969.0, 2021.0]]


def test_joined_digits_are_not_read_in_several_ways():
    read = {
        word: parse_time(word, replace(USUAL, dates="%Y%m%d"))
        for word in ("2022111", "20220111", "20220111.0")
    }
    assert [math.isnan(seconds) for seconds, _ in read.values()] == [True, False, False]


@pytest.mark.parametrize("other", ["54321", "1234", "a", "12345-6789x"])
def test_only_codes_of_one_length_are_text_although_most_are_numbers(tmp_path, other):
    path = written(tmp_path, f"n,m\n12345-6789,1\n{other},2\n" + "10001,3\n" * 5)
    if other == "54321":
        assert list(fitted(NUMBERS, path).columns.names) == ["m"]
        return
    with pytest.raises(DataError, match="column 'n': expected a number, got '12345-6789'"):
        fitted(NUMBERS, path)


@pytest.mark.parametrize("word", ["", " ", *NULLS, " NA "])
def test_usual_words_are_missing_numbers_and_times(tmp_path, word):
    path = written(tmp_path, f"n,t\n1.5,2024-02-29T18:00\n{word},{word}\n2.5,2024-03-01T19:00\n")
    fm = fitted(date_parts(), path)
    assert features(fm, path) == [[1.5, 2, 29, 18], [-1, -1, -1, -1], [2.5, 3, 1, 19]]


@pytest.mark.parametrize("word", ["na", "missing", "--", "+", "0x1", "N.A."])
def test_other_words_are_refused_with_the_remedy(tmp_path, word):
    path = written(tmp_path, f"n\n1\n{word}\n2\n3\n")
    told = r"row 2 .*, column 'n': expected a number, got .*--null-values .* is repeated for other words"
    with pytest.raises(DataError, match=told):
        fitted(NUMBERS, path)
    fm = fitted(NUMBERS, path, null_values=[word])
    assert features(fm, path) == [[1.0], [-1.0], [2.0], [3.0]]
    assert fm.columns.dialect["nulls"] == [word]
    other = written(tmp_path, "n\n1\nNA\n", "y.csv")
    message = r"y\.csv: row 2 \(index 1\), column 'n': expected a number, got 'NA'"
    with pytest.raises(DataError, match=message):
        features(fm, other)
    assert features(fm, other, null_values=["NA"]) == [[1.0], [-1.0]]


def test_text_keeps_such_words(tmp_path):
    path = written(tmp_path, "c,n\nNA,1\nb,2\n-,3\nb,?\n")
    said: list[str] = []
    config = {"steps": [{"kind": "one_hot", "columns": ["c"]}, IMPUTE]}
    fm = fitted(config, path, said)
    assert fm.columns.features[0].categories.values == ("-", "NA", "b")
    assert said == [f"{path}: 2 features: c, n; as categories: c; missing in the first rows: n (?: 1)"]


COMMAS = [["1,5", "2", "-0,25"], ["1,234", "1,2", "7"], ["0,125", "12,5e3", "+3,0"]]


@pytest.mark.parametrize("values", COMMAS)
@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_decimal_commas_are_found(tmp_path, values, delimiter):
    rows = [delimiter.join((f'"{value}"' if delimiter == "," else value, "1.5")) for value in values]
    path = written(tmp_path, "\n".join([f"n{delimiter}p", *rows, f"NA{delimiter}2.5"]) + "\n")
    said: list[str] = []
    fm = fitted(NUMBERS, path, said, delimiter=delimiter)
    want = [[float(value.replace(",", ".")), 1.5] for value in values]
    assert features(fm, path, delimiter=delimiter) == [*want, [-1.0, 2.5]]
    mark = "" if delimiter == "," else f"; delimiter: {delimiter!r}"
    assert said == [
        f"{path}: 2 features: n, p{mark}; with decimal commas: n; missing in the first rows: n (NA: 1)"
    ]
    assert fm.columns.dialect["decimal_commas"] == ["n"]


UNCLEAR = [
    (
        ["1,234", "5,678"],
        r"a decimal mark and a thousands separator look alike: --thousands , reads 1234; --decimal , reads 1\.234",
    ),
    (["1.234 €", "5.678 €"], r"look alike: --thousands \. reads 1234; --decimal \. reads 1\.234"),
    (
        ["1,234,567", "1,5"],
        "expected one way to write numbers, got '1,234,567' and '1,5': write one of the two",
    ),
    (["10,9", "10.9"], "expected one way to write numbers, got '10,9' and '10.9'"),
]


@pytest.mark.parametrize(("values", "message"), UNCLEAR)
def test_what_may_be_a_thousands_separator_is_refused(tmp_path, values, message):
    path = written(tmp_path, "n;c\n" + "".join(f"{value};a\n" for value in values))
    with pytest.raises(DataError, match=rf"column 'n': row \d \(index \d\): .*{message}"):
        fitted(NUMBERS, path, delimiter=";")
    config = {"columns": {"exclude": ["n"]}, "steps": [{"kind": "one_hot", "columns": ["c"]}]}
    assert fitted(config, path, delimiter=";").n_features_in == 1
    categories = {"steps": [{"kind": "one_hot", "columns": ["n"]}]}
    assert fitted(categories, path, delimiter=";").columns.features[0].categories.values == tuple(
        sorted(values)
    )


SMALL = ["568", "337", "0", "91"]
POINTS = {
    "a zero at the end": ([*SMALL, "2.732", "1.050", "3.141"], ",", "91", [2732.0, 1050.0, 3141.0]),
    "semicolons": ([*SMALL, "2.732", "1.051", "-3.141"], ";", "91", [2732.0, 1051.0, -3141.0]),
    "brackets": ([*SMALL, "(2.732)", "1.050", "3.141"], "\t", "91", [-2732.0, 1050.0, 3141.0]),
    "two": ([*SMALL, "2.730", "1.050"], ";", "91", "--thousands . reads 2730"),
    "no zero": ([*SMALL, "2.732", "1.051", "3.141"], ",", "91", "--thousands . reads 2732"),
    "decimals beside": ([*SMALL, "2.732", "1.050", "3.141"], ";", "0.5", "--thousands . reads 2732"),
    "no whole number": (["2.732", "1.050", "3.141"], ",", "91", ""),
    "below one": ([*SMALL, "2.732", "0.050", "3.141"], ";", "91", ""),
    "fewer digits": ([*SMALL, "2.732", "1.05", "3.141"], ";", "91", ""),
    "large numbers": ([*SMALL, "2.732", "1000", "3.141"], ";", "91", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", POINTS)
def test_points_beside_small_whole_numbers_are_thousands_or_told(tmp_path, case):
    values, mark, other, meant = POINTS[case]
    path, said = written(tmp_path, f"n{mark}m\n" + "".join(f"{one}{mark}{other}\n" for one in values)), []
    with InputOptions().open(parse_location(path)) as source:
        fm = fit_reader(load_config(NUMBERS), source, None, listener=Listener(warn=said.append))
    read = [row[0] for row in features(fm, path)]
    if isinstance(meant, str):
        assert read == [*map(float, values)]
        assert [meant in line for line in said] == [True] * bool(meant)
        told = fitted(NUMBERS, path, thousands=".") if meant else None
        read = [row[0] for row in features(told, path)] if told else [*map(float, values)]
        meant = [float(one.replace(".", "" if told else ".")) for one in values]
    assert read[-len(meant) :] == meant


SWISS = [*SMALL, "9'109", "2'732", "1'050"]


@pytest.mark.parametrize(
    ("values", "other"), [(SWISS, "9.109"), ([one.replace("'", ",") for one in SWISS], "9.109")]
)
def test_decimals_that_may_be_thousands_are_refused_by_a_model_of_whole_numbers(tmp_path, values, other):
    fm = fitted(NUMBERS, written(tmp_path, "n;m\n" + "".join(f"{one};1\n" for one in values)))
    path = written(tmp_path, f"n;m\n{other};1\n", "y.csv")
    told = r"got '9\.109'; --thousands \. reads 9109; --decimal \. reads 9\.109"
    with pytest.raises(DataError, match=told):
        features(fm, path)
    assert features(fm, path, thousands=".") == [[9109.0, 1.0]]
    assert features(fm, path, decimal=".") == [[9.109, 1.0]]
    assert features(fm, written(tmp_path, "n;m\n9.5;1\n", "y.csv")) == [[9.5, 1.0]]


@pytest.mark.parametrize(("other", "meant"), [("1,5", 1.234), ("1,234,567", 1234.0)])
def test_other_columns_tell_what_a_comma_is(tmp_path, other, meant):
    path = written(tmp_path, f"n;m\n1,234;{other}\n5,678;{other}\n")
    assert features(fitted(NUMBERS, path, delimiter=";"), path, delimiter=";")[0][0] == meant


def test_the_option_settles_the_decimal_mark(tmp_path):
    path = written(tmp_path, "n;p\n1,234;1012.3\n5,678;1013.5\n")
    assert features(fitted(NUMBERS, path, delimiter=";", decimal=","), path, delimiter=";") == [
        [1.234, 1012.3], [5.678, 1013.5],
    ]  # fmt: skip
    for options in ({"decimal": "."}, {"thousands": ","}):
        fm = fitted(NUMBERS, path, delimiter=";", **options)
        assert features(fm, path, delimiter=";")[0] == [1234.0, 1012.3]
    path = written(tmp_path, "n;p\n1,5;1.234\n2,5;5.678\n")
    for decimal in (None, ","):
        told = r"'p': .*got '1\.234', where .* --thousands \. reads 1234; if it is 1\.234, write 1,234"
        with pytest.raises(DataError, match=told):
            fitted(NUMBERS, path, delimiter=";", decimal=decimal)
        fm = fitted(NUMBERS, path, delimiter=";", decimal=decimal, thousands=".")
        assert features(fm, path, delimiter=";") == [[1.5, 1234.0], [2.5, 5678.0]]
    with pytest.raises(DataError, match="'n': .*got '1,5'; --decimal , reads 1.5"):
        fitted(NUMBERS, path, delimiter=";", decimal=".")


NBSP, THIN, MINUS, CURLY = "\u00a0", "\u202f", "\u2212", "\u2019"
DRESSED = {
    "currency before": (["€ 110,00", "€ -5,50", "-€ 3,25", "€1,00"], [110, -5.5, -3.25, 1]),
    "per cent": (["12 %", "+3%", f"{MINUS}5{NBSP}%", "NA"], [12, 3, -5, -1]),
    "unit": (["5 kg", "-3.5 kg", "1e2 kg"], [5, -3.5, 100]),
    "brackets": (["(5)", "7", "(1.5)"], [-5, 7, -1.5]),
    "minus behind": (["3349,48-", "7", "1,5-"], [-3349.48, 7, -1.5]),
    "minus behind, thousands and currency": (["1.349,48- EUR", "1.007,00 EUR", "5,50−EUR"], [-1349.48, 1007, -5.5]),
    "dashes for cents": (["CHF 5.--", "CHF 1'250.-", "CHF -3.—", "CHF 2.50"], [5, 1250, -3, 2.5]),
    "dashes behind commas": (["1.349,- €", "7,-- €", "5,50 €"], [1349, 7, 5.5]),
    "dashes without a unit": (["248,-", "-611,-", "5,5"], [248, -611, 5.5]),
    "currency in brackets": (["$3.10", "($4.00)", "(5$)", "+2.5 $"], [3.1, -4, -5, 2.5]),
    "minus sign": ([f"{MINUS}5", "7.5"], [-5, 7.5]),
    "two separators": (["1,234,567", "5", "1,234.5"], [1234567, 5, 1234.5]),
    "small beside large": (["958", "1,537", "2,000", "-3,250"], [958, 1537, 2000, -3250]),
    "point beside": (["1,537", "998.5"], [1537, 998.5]),
    "blanks": (["1 234", f"5{NBSP}678,5", f"1{THIN}234{THIN}567", "9"], [1234, 5678.5, 1234567, 9]),
    "apostrophes": (["1'234.5", f"5{CURLY}678", "1234567"], [1234.5, 5678, 1234567]),
    "all": (["€ 1.234,50", f"{MINUS}€ 1.000.000", "€ 0,5"], [1234.5, -1e6, 0.5]),
    "singular": (["76 days", "1 day", "13 days"], [76.0, 1.0, 13.0]),
    "unit with a digit": (["101 m2", "-3.5 m2", "NA", "7 m2"], [101, -3.5, -1, 7]),
    "unit with a number": (["6,6 l/100 km", "12 l/100 km", "7,25 l/100 km"], [6.6, 12, 7.25]),
    "money for a unit": (["5,5 €/m2", "1.250,75 €/m2", "20 €/m2"], [5.5, 1250.75, 20]),
    "power and sign": (["5.5 m s^-1", "-3 m s^-1"], [5.5, -3]),
    "name with a digit": (["444 ppm CO2", "5.5 ppm CO2"], [444, 5.5]),
    "out of": (["4.9 out of 5 stars", "3 out of 5 stars"], [4.9, 3]),
}  # fmt: skip


@pytest.mark.parametrize(("values", "meant"), DRESSED.values(), ids=DRESSED)
def test_numbers_with_separators_and_units_are_read_and_recorded(
    tmp_path: Path, values: list[str], meant: list[float]
) -> None:
    path = written(tmp_path, "n;m\n" + "".join(f"{value};1\n" for value in values))
    said: list[str] = []
    fm = fitted(NUMBERS, path, said, delimiter=";")
    want = [[number, 1.0] for number in meant]
    assert features(fm, path, delimiter=";") == want
    assert "n" in said[0].partition("; ")[2] or values[0].startswith(MINUS)
    assert Columns.from_plain(fm.columns.to_plain()).to_plain() == fm.columns.to_plain()
    # A row by itself, in the dialect that the model has recorded.
    for value, row in zip(values, want, strict=True):
        assert features(fm, written(tmp_path, f"n;m\n{value};1\n", "y.csv"), delimiter=";") == [row]


@pytest.mark.sampled
@pytest.mark.parametrize(("values", "meant"), DRESSED.values(), ids=DRESSED)
def test_labels_with_separators_and_units_are_numbers(
    tmp_path: Path, values: list[str], meant: list[float]
) -> None:
    known = 10 * [(value, number) for value, number in zip(values, meant, strict=True) if value != "NA"]
    path = written(tmp_path, "y;x\n" + "".join(f"{value};{i}\n" for i, (value, _) in enumerate(known)))
    config = {"steps": ["standardize", {"kind": "ridge", "task": "regression"}]}
    fm = kafeat.fit(config, path, label="y", reading=InputOptions(delimiter=";"))
    assert fm.predictor.labels.type in ("integer", "number")
    x, numbers = np.arange(len(known))[:, None], np.array([number for _, number in known], float)
    np.testing.assert_allclose(fm.predict(x), kafeat.fit(config, x, numbers).predict(x), rtol=1e-9)


WORTH = {
    "powers of ten": (["$1.5M", "-$2.25K", "$7", "3"], ["$", "K=1000", "M=1e6"], [1.5e6, -2250, 7, 3]),
    "sides of an account": (["1.234,5 H", "7,25 S", "3 S"], ["H", "S=-1"], [1234.5, -7.25, -3]),
    "shares": (["50 %", "0.25", "(5%)"], ["%=0.01"], [0.5, 0.25, -0.05]),
    "a part of another": (["5 kg", "250 g", "2"], ["g=0.001", "kg"], [5, 0.25, 2]),
    "open end": (["382+ sold", "1250+ sold", "7"], ["+ sold"], [382, 1250, 7]),
    "marks": (["50 a)", "-3 (p)", "7+", "2.5"], ["a)", "(p)", "+"], [50, -3, 7, 2.5]),
}


@pytest.mark.parametrize(("values", "unit", "meant"), WORTH.values(), ids=WORTH)
def test_a_unit_multiplies_the_numbers_that_have_it(tmp_path, values, unit, meant):
    path = written(tmp_path, "n;m\n" + "".join(f"{value};1\n" for value in values))
    fm = fitted(NUMBERS, path, delimiter=";", unit=unit)
    for value, number in zip(values, meant, strict=True):
        alone = written(tmp_path, f"n;m\n{value};1\n", "y.csv")
        assert features(fm, alone, delimiter=";") == [[number, 1.0]]


@pytest.mark.parametrize(
    "asked", [{}, {"unit": ["€"]}, {"unit": ["kg"]}, {"thousands": "."}, {"decimal": ","}]
)
def test_an_option_leaves_what_the_model_knows_of_other_marks(
    tmp_path: Path, asked: dict[str, object]
) -> None:
    path = written(tmp_path, "n;m\n500 €;0,5\n1.000 €;1,5\n2.500 €;2,5\n10.000 €;3,5\n")
    few = written(tmp_path, "n;m\n-1.000 €;1,5\n2.500 €;2,5\n", "few.csv")
    assert features(fitted(NUMBERS, path), few, **asked) == [[-1000.0, 1.5], [2500.0, 2.5]]
    debt = written(tmp_path, "n;m\n(1.000 €);1,5\n", "debt.csv")
    with pytest.raises(DataError, match=r"got '\(1\.000 €\)'; --decimal , reads -1000"):
        features(fitted(NUMBERS, path), debt)
    assert features(fitted(NUMBERS, path), debt, decimal=",") == [[-1000.0, 1.5]]
    bare = written(tmp_path, "n;m\n-1.000;1,5\n", "bare.csv")
    with pytest.raises(DataError, match=r"got '-1\.000'; --unit '€' reads -1000"):
        features(fitted(NUMBERS, path), bare)


def test_options_that_contradict_the_values_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'n,m\n"1,537",1\n958,2\n"1,000",3\n"2,500",4\n')
    told = r"--decimal ,: expected this mark in numbers, got '1,537', where ',' separates thousa"
    with pytest.raises(DataError, match=told):
        fitted(NUMBERS, path, decimal=",")
    assert features(fitted(NUMBERS, path), path)[:2] == [[1537.0, 1.0], [958.0, 2.0]]
    with pytest.raises(UsageError, match="--thousands: expected another mark than --decimal, got , for both"):
        fitted(NUMBERS, path, decimal=",", thousands=",")


FORMS = {
    "24.12.2013 18:00": "%d.%m.%Y", "12/24/2013 6:00 PM": "%m/%d/%Y", "24/12/2013, 18:00:00": "%d/%m/%Y",
    "2013/12/24 18:00": "%Y/%m/%d", "2013-12-24T18:00Z": "%Y-%m-%d", "24-12-2013T18": "%d-%m-%Y",
    "24 Dec 2013 18:00": "%d %b %Y", "December 24, 2013 18:00": "%b %d, %Y", "24.12.13 6 PM": "%d.%m.%y",
    "24-Dec-13 18:00": "%d-%b-%y", "12/24/13 18:00": "%m/%d/%y", "Tue, 24 Dec 2013 18:00:00 +0100": "%a, %d %b %Y",
    "24/12/13 18:00": "%d/%m/%y", "99-12-24 18:00": "%y-%m-%d",
    "Tue 24.12.2013 06 PM": "%a %d.%m.%Y", "Tue 24 Dec 2013 18:00": "%a %d %b %Y", "24/12/13 18.00": "%d/%m/%y",
    "Tue Dec 24 18:00:00 2013": "%a %b %d %H:%M:%S %Y", "Di., 24.12.2013 18.00.00": "%a, %d.%m.%Y",
    "24Dec2013 18:00": "%d%b%Y", "24/12/2013 à 18h00": "%d/%m/%Y", "2013. 12. 24. 18:00": "%Y. %m. %d.",
    "2013년 12월 24일 18:00": "%Y년 %m월 %d일",
    "24DEC2013:18:00:00": "%d%b%Y:%H:%M:%S", "24/Dec/2013:18:00:00 +0100": "%d/%b/%Y:%H:%M:%S",
    "20131224180000": "%Y%m%d%H%M%S",
    "201312241800": "%Y%m%d%H%M", "20131224T180000Z": "%Y%m%dT%H%M%S", "2013.12.24 6 p.m.": "%Y.%m.%d",
    "2013-12-24 06:00PM": "%Y-%m-%d", "12.24.2013 18:00:00.0": "%m.%d.%Y", "24. Dez. 2013 um 18:00 Uhr": "%d. %b %Y",
    "24 de diciembre de 2013 18h": "%d de %b de %Y", "24 décembre 2013 à 18:00": "%d %b %Y",
    "2013-12-24 kl. 18.00": "%Y-%m-%d", "24.12.2013 18:00 MEZ": "%d.%m.%Y", "12/24/2013 at 6 PM EST": "%m/%d/%Y",
}  # fmt: skip


@pytest.mark.parametrize(("text", "form"), FORMS.items())
def test_common_forms_of_dates(tmp_path, text, form):
    path = written(tmp_path, f't,n\n"{text}",1\nNA,2\n')
    fm = fitted(date_parts(), path)
    assert features(fm, path) == [[1, 12, 24, 18], [2, -1, -1, -1]]
    assert fm.columns.dialect["dates"] == {"t": form}
    other = "2013-12-24" if form != "%Y-%m-%d" else "24.12.2013"
    with pytest.raises(
        DataError,
        match=r"y\.csv: row 1 \(index 0\), column 't': expected a time .*--date-format .* otherwise write all in one",
    ):
        features(fm, written(tmp_path, f"t,n\n{other},1\n", "y.csv"))
    assert features(fm, path.parent / "y.csv", date_format=["%d.%m.%Y"]) == [[1, 12, 24, 0]]


@pytest.mark.parametrize(("texts", "form", "days"), [
    (["Jan-2020", "Feb-2020"], "%b-%Y", [(1, 1), (2, 1)]),
    (["January 2020", "may 2020"], "%b %Y", [(1, 1), (5, 1)]),
    (["2020-01", "2020-12"], "%Y-%m", [(1, 1), (12, 1)]),
    (["Jul 31, 2020", "Jun 1, 2019"], "%b %d, %Y", [(7, 31), (6, 1)]),
    (["jue, 31 ene 2020", "mar, 1 dic 2019"], "%a, %d %b %Y", [(1, 31), (12, 1)]),
    (["20200131", "20191201"], "%Y%m%d", [(1, 31), (12, 1)]),
    (["01/2020", "12/2020"], "%m/%Y", [(1, 1), (12, 1)]),
    (["2020-12-31 24:00", "2020-02-28T24:00:00"], "%Y-%m-%d", [(1, 1), (2, 29)]),
    *[
        ([f"7 {name} 2020" for name in names.split()], "%d %b %Y", [(i + 1, 7) for i in range(12)])
        for names in (
            "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
            "ene feb mar abr may jun jul ago sep oct nov dic",
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
            "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
            "januari februari maart april mei juni juli augustus september oktober november december",
        )
    ],
])  # fmt: skip
def test_months_short_years_and_digits_are_dates(
    tmp_path: Path, texts: list[str], form: str, days: list[tuple[int, int]]
) -> None:
    path = written(tmp_path, "t,n\n" + "".join(f'"{text}",1\n' for text in texts))
    fm = fitted(date_parts("month", "day"), path)
    assert fm.columns.dialect["dates"] == {"t": form}
    assert features(fm, path) == [[1, *day] for day in days]
    with pytest.raises(DataError, match="column 't': expected .*--date-format"):
        fitted(date_parts(), written(tmp_path, "t,n\n20201301,1\n20200131,1\n", "z.csv"))


@pytest.mark.parametrize(("told", "words"), [
    (
        "holds several numbers",
        "124/63|7.9 ± 0.4|1:8|2 x 3 cm|12 (34%)|3 von 30|3 out of 5|3 years 6 months|5'4\"|$4K-$12K|"
        "01.02.2022 - 27.01.2023",
    ),
    ("holds powers of ten", "1.5x10^3|2,5 × 10^-2"),
    ("like hours", "7:30|17:05:10|3h 20m|3 hr 20 min"),
    ("", "12345-6789|030-167050|10.0.12.39|A23-46|14 Elm Street|(907) 944-6672|1E50|5+ years"),
])  # fmt: skip
def test_several_numbers_in_a_value_are_told(told, words):
    for word in words.split("|"):
        note = guess_dates([word.replace("3", str(i)) for i in range(3, 9)], Asked()).note
        assert (told in note, bool(told)) == (True, bool(note)), word


def test_the_name_of_a_zone_is_no_offset(tmp_path: Path) -> None:
    path = written(tmp_path, "t,n\n2020-01-31 18:00 CET,1\n")
    fitted(date_parts(), path, said := [])
    assert "hours as written" in said[0]
    told = r"got '2020-01-31 18:00 CET'; write an offset such as \+01:00 in the place"
    with pytest.raises(DataError, match=told):
        fitted(date_parts(timezone="UTC"), path)


def test_where_day_month_and_year_stay_open_the_forms_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "t,n\n01-02-03,1\n04-05-06,2\n")
    told = r"column 't': .*from the month or the year: --date-format (%.*)"
    with pytest.raises(DataError, match=told) as refused:
        fitted(date_parts("year", "month", "day"), path)
    forms = str(refused.value).partition("--date-format ")[2].split(" or ")
    assert forms == ["%d-%m-%y", "%m-%d-%y", "%y-%m-%d"]
    for form in forms:
        [row, _] = features(fitted(date_parts("year", "month", "day"), path, date_format=[form]), path)
        meant = datetime.strptime("01-02-03", form)
        assert row == [1, meant.year, meant.month, meant.day]


@pytest.mark.parametrize(
    "form", ["%d.%m", "%Q.%m.%Y", "%d.%d.%m.%Y", "", "%s %d", "d.m.Y", "%d.%m.%Y%", "%d.%m.%Y\n"]
)
def test_other_formats_are_refused(tmp_path, form):
    path = written(tmp_path, "t,n\n2024-02-29,1\n")
    with pytest.raises(UsageError, match="--date-format: expected %s, %Q, or year, month and day"):
        fitted(date_parts(), path, date_format=[form])


def test_random_tables_are_read_right_or_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    fuzz = importlib.import_module("fuzz_dialects")
    rng, found = random.Random(34), Counter[str]()
    for _ in range(40):
        of = fuzz.dialect(rng)
        values = fuzz.table(rng, of)
        verdict = fuzz.judge(of, values, tmp_path / "in.csv", 1)
        assert not verdict[:2].isupper(), f"{of}: {values}: {verdict}"
        assert fuzz.oracle(of, values, tmp_path / "in.csv") == "same", f"{of}: {values}"
        found[verdict.partition(":")[0]] += 1
    assert min(found["right"], found["refused"]) > 5


def test_a_form_is_that_of_most_values():
    texts = ["24.12.2013", "01.02.2013", "soon", "NA"]
    assert guess_dates(texts, Asked())[:3] == ("%d.%m.%Y", 2 / 3, "")
    assert guess_dates([], Asked()).form == "%Y-%m-%d"
    assert time_pattern("%d.%m.%Y").fullmatch("24x12x2013") is None


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d" + 7 * "%a", "%a%d.%m.%Y%a", "%d.%m.%Y %f%f", "%Y%m%d%d", "%b%B %d %Y"]
)
def test_a_form_has_each_letter_once(form):
    with pytest.raises(ValueError, match=rf"letters of strftime, each of them once, got '{re.escape(form)}'"):
        time_pattern(form)
    assert time_pattern("%d%%%m%%%Y").fullmatch("24%12%2013")  # a sign of its own


# With an exponential or quadratic search each of these takes hours, in which no signal is heard.
@pytest.mark.timeout(60)
def test_no_long_text_is_tried_in_every_way():
    long = 50_000 * "1"
    for word in (f"{long}x", f"{long}.{long}x", f"{long}e"):
        assert "null-values" in remedy(word, USUAL, may_miss=True)
    signs = (f"a{50_000 * ' '}b", f"{50_000 * '('}1", f"{50_000 * ' €'}1", f"1{50_000 * ' 1'}")
    for word in (f"{long}e", *signs):
        assert guess_numbers([word, "1.5 €", "2.5 €", "3 €"], Asked()).problem == ""
        assert guess_dates([word, f"1{25_000 * ' / 1'}"], Asked()).note == ""
    form = "%Y-%m-%d %a%b%A%H%M%S%f%p%z"
    for word in (50_000 * "a", 50_000 * "mon", f"{long}Z"):
        assert time_pattern(form).fullmatch(f"2013-12-24 {word}!") is None
    assert has_offset("12:30:00 +02:00")
    assert not has_offset(50_000 * ":00" + "!")
    # Python reads no whole number so long.
    assert math.isnan(parse_time(f"2013-12-24T01:02:03.{long}", USUAL)[0])


# As Python's calendar has them.
INSTANTS = [
    datetime(2013, 1, 1, 4, 30, tzinfo=UTC) + timedelta(hours=1009 * i, microseconds=i) for i in range(30)
]
ZONES = ["America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]
ALL = ("year", "month", "day", "weekday", "hour", "minute", "second", "days")


@pytest.mark.sampled
@pytest.mark.parametrize("zone", ZONES)
def test_with_a_named_zone_all_formats_give_the_same_bytes(tmp_path, zone):
    local = [time.astimezone(ZoneInfo(zone)) for time in INSTANTS]
    want = [[t.month, t.day, t.hour] for t in local]
    rows = [time.astimezone(ZoneInfo(ZONES[i % 4])).isoformat() for i, time in enumerate(INSTANTS)]
    csv = written(tmp_path, "\n".join(["t", *rows]) + "\n")
    rows = [time.isoformat().replace("+00:00", "Z") for time in INSTANTS]
    zulu = written(tmp_path, "\n".join(["t", *rows]), "z.csv")
    paths = [csv, zulu]
    for name, kind in (("a", "Asia/Tokyo"), ("b", "UTC"), ("c", "-03:30")):
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(pa.table({"t": pa.array(INSTANTS, pa.timestamp("us", kind))}), paths[-1])
    plain = [time.replace(tzinfo=None) for time in local]
    pq.write_table(pa.table({"t": pa.array(plain, pa.timestamp("us"))}), tmp_path / "d.parquet")
    fm = fitted(date_parts(timezone=zone), csv)
    assert features(fm, csv) == want
    fm = fitted(date_parts(*ALL, timezone=zone), csv)
    assert len({np.array(features(fm, path)).tobytes() for path in [*paths, tmp_path / "d.parquet"]}) == 1
    fitted_bytes = {
        np.array(features(fitted(date_parts(*ALL, timezone=zone), path), csv)).tobytes() for path in paths
    }
    assert fitted_bytes == {np.array(features(fm, csv)).tobytes()}
    seconds = np.array([[time.timestamp()] for time in INSTANTS])
    by_place = date_parts(timezone=zone)
    by_place["steps"][0]["columns"] = ["c0"]  # type: ignore[index]
    assert kafeat.fit(by_place, seconds).transform(seconds).tolist() == want


def test_hours_stay_as_they_are_written(tmp_path):
    times = "2013-06-14T16:00-04:00\n2013-12-14 16:00:00.5-05:00\n2013-12-14T16:00Z\n2013-12-14 16:00\n"
    path = written(tmp_path, f"t\n{times}")
    said: list[str] = []
    assert [row[2] for row in features(fitted(date_parts(), path, said), path)] == [16, 16, 16, 16]
    assert said[0].endswith(
        "as times: t (hours as written, whatever their offset: `timezone` in date_parts names another zone)"
    )
    assert [row[2] for row in features(fitted(date_parts(timezone="UTC"), path), path)] == [20, 21, 16, 16]


def test_instants_get_the_hours_of_their_zone_which_the_map_keeps(tmp_path):
    def table(zone: str) -> Path:
        path = tmp_path / f"{zone[:3]}.parquet"
        pq.write_table(pa.table({"t": pa.array(INSTANTS, pa.timestamp("us", zone))}), path)
        return path

    said: list[str] = []
    fm = fitted(date_parts(), table("America/New_York"), said)
    assert said[0].endswith("as times: t (hours of America/New_York)")
    local = [time.astimezone(ZoneInfo("America/New_York")) for time in INSTANTS]
    want = [[t.month, t.day, t.hour] for t in local]
    assert features(fm, table("America/New_York")) == features(fm, table("UTC")) == want
    text = written(tmp_path, "t\n2013-06-14T16:00-04:00\n")
    told = "expected times without a zone, as when fitting, got instants .* UTC; fit"
    with pytest.raises(DataError, match=told):
        features(fitted(date_parts(), text), table("UTC"))


@pytest.mark.parametrize("zone", ["Mars/Olympus", "EST5EDT6", "../etc/passwd", "local", ""])
def test_other_zones_are_refused(zone):
    with pytest.raises(ConfigError, match=r"steps\[0\]\.timezone.*expected keep, UTC or a name such as"):
        load_config(date_parts(timezone=zone))


def test_what_a_map_records_of_text():
    table = pa.table({"n": [1.0], "t": [datetime(2024, 2, 29)]})
    columns = kafeat.fit(date_parts(timezone="Asia/Tokyo"), table).columns
    plain = columns.to_plain()
    assert plain["dialect"] == {
        "nulls": list(NULLS), "decimal_commas": [], "dates": {"t": "%Y-%m-%d"}, "timezones": {"t": "Asia/Tokyo"},
    }  # fmt: skip
    assert Columns.from_plain(plain) == columns
    old = Columns.from_plain({key: plain[key] for key in plain if key != "dialect"})
    assert {column.dialect for column in old.features} == {OLD}
    assert "dialect" not in old.to_plain()
    for key, value in (
        ("nulls", [1]), ("nulls", "NA"), ("decimal_commas", ["x"]), ("decimal_commas", None), ("dates", {}),
        ("dates", {"t": "%d"}), ("dates", {"t": "(%d%m%Y" * 90}), ("timezones", {"n": "UTC"}),
        ("timezones", {"t": "Mars/Olympus"}), ("timezones", {"t": 1}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"columns\.dialect\.{key}: expected"):
            Columns.from_plain({**plain, "dialect": {**plain["dialect"], key: value}})
    with pytest.raises(
        ValueError, match=r"columns\.dialect: expected an entry as `fit` writes it, got an empty list"
    ):
        Columns.from_plain({**plain, "dialect": []})


def test_maps_that_record_no_dialect_read_as_they_did(tmp_path):
    path = written(tmp_path, "n,t\n1,2013-06-14T16:00-04:00\n-,1371240000\n")
    fm = fitted(date_parts(), written(tmp_path, "n,t\n1,2013-06-14\n", "y.csv"))
    content = artifact.loads(fm.dumps(), "new")
    del content["columns"]["dialect"]
    for steps in (content["steps"], content["config"]["steps"]):
        step = steps[0].get("recipe", steps[0])
        assert step.pop("timezone") == "keep"
    (tmp_path / "old.joblib").write_bytes(artifact.dumps(content))
    old = kafeat.load(tmp_path / "old.joblib")
    assert {column.dialect for column in old.columns.features} == {OLD}
    assert [row[3] for row in features(old, path)] == [20, 20]
    with pytest.raises(DataError, match="expected a number, got 'NA'"):
        features(old, written(tmp_path, "n,t\nNA,2013-06-14\n", "z.csv"))


def test_words_for_what_is_missing_have_no_spaces_around_them(tmp_path):
    path = written(tmp_path, "n,k\n1,1\n -999 ,2\n,3\n")
    assert features(fitted(NUMBERS, path, null_values=[" -999 ", ""]), path) == [[1, 1], [-1, 2], [-1, 3]]
    only_empty = fitted(NUMBERS, written(tmp_path, "n,k\n1,1\n,2\n", "y.csv"), null_values=[""])
    assert only_empty.columns.dialect["nulls"] == []


LONG = 1 << 13
"""Rows that are more than the first bytes, which are looked at."""


@pytest.mark.usefixtures("short_look")
def test_whole_numbers_beside_decimal_commas_may_get_one_later(tmp_path):
    first = "n;k\n" + "1,50000;2\n" * LONG
    fm = fitted(NUMBERS, written(tmp_path, first + "2,5;2,25\n"), delimiter=";")
    assert fm.columns.dialect["decimal_commas"] == ["n", "k"]
    assert features(fm, tmp_path / "x.csv", delimiter=";")[-1] == [2.5, 2.25]
    with pytest.raises(DataError, match=rf"row {LONG + 1} .*got '1\.234'; --thousands \. reads 1234"):
        fitted(NUMBERS, written(tmp_path, first + "2,5;1.234\n"), delimiter=";")
    mixed = written(tmp_path, "n;k;m\n" + "1,5;2;2.5\n" * LONG + "2,5;2.25;2.5\n")
    assert features(fitted(NUMBERS, mixed, delimiter=";"), mixed, delimiter=";")[-1] == [2.5, 2.25, 2.5]


@pytest.mark.usefixtures("short_look")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_option_holds_for_a_column_that_begins_with_empty_fields(tmp_path, suffix):
    fm = fitted(NUMBERS, written(tmp_path, "n,k\n1.5,2.5\n", "y.csv"))
    header, row, last = "n;k", "1,50000;", "1,5;2,25"
    if suffix == ".jsonl":
        header, row, last = "", '{"n": "1,5"}', '{"n": "1,5", "k": "2,25"}'
    path = written(tmp_path, "\n".join([header, *[row] * LONG, last, ""]), f"x{suffix}")
    assert features(fm, path, delimiter=";", decimal=",")[-1] == [1.5, 2.25]


def test_a_later_file_is_read_with_the_mark_that_the_option_tells(tmp_path):
    fm = fitted(NUMBERS, written(tmp_path, "n\n1.5\n", "y.csv"))
    for text, message in (
        ("n\n1.234\n", "row 1 .*got '1.234'; --thousands . reads 1234"),
        ('n\n"1,5"\n1.5\n', "row 2 .*got '1.5'; others are written as 1,5: write all in one way"),
    ):
        with pytest.raises(DataError, match=message):
            features(fm, written(tmp_path, text), decimal=",")
    assert features(fm, written(tmp_path, "n\n1.234\n"), decimal=",", thousands=".") == [[1234.0]]


@pytest.mark.usefixtures("short_look")
def test_a_date_format_holds_where_no_value_tells_the_form(tmp_path):
    text = "n,t\n" + "1,      \n" * LONG + "1,05/06/2024\n"
    fm = fitted(date_parts(), written(tmp_path, text), date_format=["%d/%m/%Y"])
    assert features(fm, tmp_path / "x.csv")[-1] == [1, 6, 5, 0]
    assert features(fm, tmp_path / "x.csv", date_format=["%m/%d/%Y"])[-1] == [1, 5, 6, 0]


def test_numbers_of_json_need_no_comma_beside_text_with_commas(tmp_path):
    path = written(tmp_path, '{"n": "1,5", "k": 1.234}\n{"n": "2,5", "k": 2.345}\n', "x.jsonl")
    assert features(fitted(NUMBERS, path), path) == [[1.5, 1.234], [2.5, 2.345]]


@pytest.mark.usefixtures("short_look")
def test_a_label_of_fractions_after_whole_numbers_names_the_remedy(tmp_path):
    path = written(tmp_path, "n,y\n" + "1,2\n" * 4 * LONG + "1,2.5\n")
    config = load_config({"steps": [{"kind": "impute"}, {"kind": "ridge"}]})
    with (
        InputOptions().open(parse_location(path)) as source,
        pytest.raises(
            DataError, match=rf"row {4 * LONG + 1} .*got '2\.5'; write the whole numbers of the first"
        ),
    ):
        fit_reader(config, source, "y")


def test_fit_in_python_takes_the_options_for_reading():
    dates = {"steps": [{"kind": "date_parts", "columns": ["a"]}, "standardize"]}
    table = pa.table({"a": ["03/04/2014", "05/06/2014"] * 10, "b": range(20)})
    with pytest.raises(DataError, match="--date-format %d/%m/%Y or %m/%d/%Y"):
        kafeat.fit(dates, table)
    fm = kafeat.fit(dates, table, reading=InputOptions(date_format=("%d/%m/%Y",)))
    iso = table.set_column(0, "a", pa.array(["2014-04-03", "2014-06-05"] * 10))
    assert np.array_equal(fm.transform(table), kafeat.fit(dates, iso).transform(iso))
