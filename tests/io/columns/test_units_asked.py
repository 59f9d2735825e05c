"""Units that are asked for: those of one column leave the others as they are, and no minus or other unit is lost."""

import itertools
import re
import shlex

import numpy as np
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.errors import DataError, KafeatError
from kafeat.io.columns.number_forms import respelled
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.messages import Listener

ROWS = 40
SIZES = np.round(np.random.default_rng(0).uniform(1.0, 9.0, ROWS), 2)
MEANS = {"kind": "impute", "strategy": "mean"}
OF_V = {"dtype": "float64", "columns": {"include": ["v"]}, "steps": [MEANS]}


def written(tmp_path, values):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "".join(f"{one};{size}\n" for one, size in zip(values, SIZES, strict=True)))
    return str(path)


def read(path, **asked):
    config = {"columns": {"include": ["a"]}, "steps": [{"kind": "minmax"}]}
    return kafeat.fit(config, path, reading=InputOptions(**asked)).columns.features[0].dialect


MIXED = [f"{size} {'g' if i % 4 == 3 else 'mg'}" for i, size in enumerate(SIZES)]
BEHIND = [f"{size}{'-' if i % 3 == 0 else ''}" for i, size in enumerate(SIZES)]
SCHOOL = ["1", "2-", "3", "2"] * (len(SIZES) // 4)
ONE, MINUS = "expected one unit, got .*: write all in one", "got '.*-'; write the minus before the number"
BOTH = "expected one way to write a minus, got '-1.5' and '.*-': write one of the two; --exclude a leaves"
PART = "--unit: expected a text next to numbers, such as kg, got -, which is part of a number"


@pytest.mark.parametrize(("values", "unit", "told"), [
    (MIXED, ["g"], ONE), (SCHOOL, [], MINUS), (["-1.5", *BEHIND[1:]], [], BOTH), (BEHIND, ["-"], PART),
])  # fmt: skip
def test_what_is_no_unit_or_another_is_refused(tmp_path, values, unit, told):
    with pytest.raises(KafeatError, match=told):
        read(written(tmp_path, values), unit=unit)


OPTIONS = {
    "decimal": ",", "thousands": ",", "unit": ["kg"], "null_values": ["x"], "date_format": ["%d.%m.%Y"],
    "delimiter": ";", "encoding": "cp1252",
}  # fmt: skip


@pytest.mark.parametrize("option", [*OPTIONS, "thousands_and_unit"])
def test_an_option_changes_nothing_else_of_what_a_model_knows(tmp_path, option):
    names = option.split("_and_") if "_and_" in option else [option]
    asked = {name: OPTIONS[name] for name in names} | ({"decimal": "."} if option == "unit" else {})
    lines = [
        f"{i}.5 mg/dL;{'<1' if i == 2 else i};{i + 1:02}/13/20;{['TRUE', 'False'][i % 2]}" for i in range(12)
    ]
    (tmp_path / "old.csv").write_text("\n".join(["v;n;t;b", *lines]))
    steps = [{"kind": "date_parts", "columns": ["t"], "parts": ["month", "day"]}, MEANS]
    reading = InputOptions(null_values=["<1"], date_format=["%m/%d/%y"])
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, str(tmp_path / "old.csv"), reading=reading)

    def got(value, day="03/04/20"):
        (tmp_path / "new.csv").write_text(f"v;n;t;b\n{value};7;{day};TRUE\n{value};7;{day};FALSE\n")
        kafeat.transform(tmp_path / "new.csv", tmp_path / "z.npy", model=fm, jobs=1, **asked)
        return np.load(tmp_path / "z.npy").tolist()

    assert got("3,5 mg/dL" if option == "decimal" else "3.5 mg/dL") == [
        [3.5, 7.0, b, 3.0, 4.0] for b in (1.0, 0.0)
    ]
    for value in ("3.2 mmol/L", "124", "3,2 mmol/L", "true"):
        with pytest.raises(DataError, match=f"column 'v': expected a number, got '{value}'"):
            got(value)


WORDS = {
    "a word beside those of the model": ({"null_values": ["<1"]}, "N/A 5 <1", ["N/A", "<1"]),
    "a word beside usual ones": ({}, "?! NA 5", ["?!", "NA"]),
    "an infinity": ({}, "4 inf null", ["inf", "null"]),
}


@pytest.mark.parametrize("case", WORDS)
def test_the_words_that_are_named_read_the_rows(tmp_path, case):
    reading, words, named = WORDS[case]
    config = {"dtype": "float64", "steps": [{"kind": "impute", "strategy": "constant", "value": -1}]}
    (tmp_path / "old.csv").write_text("v,w\n1,1\n<1,2\n" if reading else "v,w\n1,1\n2,2\n")
    fm = kafeat.fit(config, str(tmp_path / "old.csv"), reading=InputOptions(**reading))
    (tmp_path / "new.csv").write_text("v,w\n" + "".join(f"{word},1\n" for word in words.split()))
    with pytest.raises(DataError, match="--null-values .* reads it as missing") as told:
        kafeat.transform(tmp_path / "new.csv", tmp_path / "z.npy", model=fm, jobs=1)
    options = re.search("(--null.*) reads", str(told.value))[1]
    assert shlex.split(options)[1::2] == named
    kafeat.transform(tmp_path / "new.csv", tmp_path / "z.npy", model=fm, jobs=1, null_values=named)
    meant = [-1.0 if word in named else float(word) for word in words.split()]
    assert np.load(tmp_path / "z.npy")[:, 0].tolist() == meant


@pytest.mark.filterwarnings("ignore:.*--unit kg")
@pytest.mark.parametrize(
    "asked", [{}, {"decimal": ","}, {"decimal": "."}, {"thousands": ","}, {"unit": ["kg"]}]
)
def test_what_no_option_reads_names_none(tmp_path, asked):
    config = {"dtype": "float64", "steps": [{"kind": "impute", "strategy": "mean"}]}
    (tmp_path / "old.csv").write_text("v;b\n29.6;True\n25.5;False\n")
    fm = kafeat.fit(config, str(tmp_path / "old.csv"), reading=InputOptions(**asked))
    assert fm.columns.names == ("v", "b")
    marks, words = (
        ("29.6;TRUE 25,5;FALSE", "write all in one way"),
        ("29.6;TRUE 2;TRUE 3;yes", "write 1 for yes and 0 for"),
    )
    for rows, told in (marks, words):
        (tmp_path / "new.csv").write_text("v;b\n" + rows.replace(" ", "\n"))
        with pytest.raises(DataError, match=told) as error:
            kafeat.transform(tmp_path / "new.csv", tmp_path / "z.npy", model=fm, jobs=1, **asked)
        assert not re.search("--(decimal|null|thousands|unit)", str(error.value))


SPELLED = {
    "Arabic": ["٠٫٤٠", "-٠٫١٧", "٣", "NA"],
    "Devanagari": ["०.०८", "१२.५", "७"],
    "full width": ["０．０８", "－１２", "７"],
    "HTML": ["&euro;44.5", "&minus;&euro;3", "&#8364;7"],
    "hexadecimal": ["0xC8", "0x7f", "0x10"],
    "lengths of time": ["PT26M42S", "P1DT2H", "PT0.5S"],
    "arrows": ["▲11.5%", "▼5.4%", "▲7%"],
    "Excel": ['"=""12"""', '"=""-3.5"""', '"=""7"""'],
}
MEANT = {
    "Arabic": [0.4, -0.17, 3.0], "Devanagari": [0.08, 12.5, 7.0], "full width": [0.08, -12.0, 7.0],
    "HTML": [44.5, -3.0, 7.0], "hexadecimal": [200.0, 127.0, 16.0], "lengths of time": [1602.0, 93600.0, 0.5],
    "arrows": [11.5, -5.4, 7.0], "Excel": [12.0, -3.5, 7.0],
}  # fmt: skip


@pytest.mark.parametrize("case", SPELLED)
def test_a_note_respells_numbers_so_that_they_are_read(tmp_path, case):
    path, said = tmp_path / "t.csv", []
    path.write_text("v,u\n" + "".join(f"{one},1\n" for one in SPELLED[case]), encoding="utf-8")
    config = load_config({"columns": {"include": ["u"]}, "steps": ["minmax"]})
    with InputOptions().open(parse_location(path)) as source:
        fit_reader(config, source, None, listener=Listener(warn=said.append))
        words = [word for word in source.first_texts("v") if word != "NA"]
    first = words[0]
    told = f"values such as {first} are no numbers", f"write {respelled(first)}"
    assert any(all(one in line for one in told) for line in said)
    path.write_text("v,u\n" + "".join(f"{respelled(one)},1\n" for one in words), encoding="utf-8")
    fm = kafeat.fit(OF_V, path)
    kafeat.transform(path, tmp_path / "z.npy", model=fm, jobs=1)
    assert np.load(tmp_path / "z.npy")[:, 0].tolist() == MEANT[case]


ADVISED = {
    "crore": ("₹1.10 Cr|₹40.92 L|₹3 L", [1.1e7, 40.92 * 1e5, 3e5]),
    "compass": ("2.25°W|97.5°E|3°W", [-2.25, 97.5, -3.0]),
    "shares": ("80%|0.53|0.25|7%|0.5|1%|2%|0.75", [0.8, 0.53, 0.25, 7 * 0.01, 0.5, 0.01, 0.02, 0.75]),
    "several answers": ("3,4,5|1,4|3,5|2,5", None),
    "decimal commas beside points": ("4,5|1,4|2,5", None),
    "long numbers": ("1234567890123456781|1234567890123456782|7", None),
}


@pytest.mark.parametrize("case", ADVISED)
def test_options_that_are_named_read_the_column(tmp_path, case):
    values, meant = ADVISED[case]
    path, said = tmp_path / "t.csv", []
    path.write_text("v,u\n" + "".join(f'"{one}",0.5\n' for one in values.split("|") * 2))
    try:
        with InputOptions().open(parse_location(path)) as source:
            fit_reader(load_config(OF_V), source, None, listener=Listener(warn=said.append))
    except DataError as error:
        said = [str(error), source.fields[0].note]
    told, *_ = [line for line in said if "--" in line]
    option, *more = re.findall("--(?:unit|text) (?:'[^']*'|[^ ;]+)", told)
    words = shlex.split(" ".join([option, *more] if meant else [option]))
    asked = {words[0][2:]: words[1::2]}
    if meant is None:
        assert asked == {"text": ["v"]}
        config = {**OF_V, "steps": [{"kind": "one_hot", "columns": ["v"]}]}
        fm = kafeat.fit(config, path, reading=InputOptions(**asked))
        assert fm.columns.features[0].categories.values in [*itertools.permutations(values.split("|"))]
        return
    fm = kafeat.fit(OF_V, path, reading=InputOptions(**asked))
    kafeat.transform(path, tmp_path / "z.npy", model=fm, jobs=1)
    # A product rounds once.
    np.testing.assert_allclose(np.load(tmp_path / "z.npy")[:, 0], meant * 2, rtol=4e-16)
