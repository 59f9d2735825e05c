"""Notes of a fit about columns that are probably no features; nothing is refused for them."""

import warnings

import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import KafeatWarning, UsageError
from kafeat.io.columns.fields import are_numbers

CONFIG = "columns: {exclude: [label]}\nsteps: [{kind: minmax}]\n"


@pytest.fixture
def said(in_process):
    """Fit in a folder: the exit code and the lines on stderr."""

    def said(folder, text, *options, config=CONFIG):
        (folder / "c.yaml").write_text(config)
        (folder / "x.csv").write_text(text)
        (folder / "m.joblib").unlink(missing_ok=True)
        done = in_process("fit", "--config", "c.yaml", "x.csv", "m.joblib", *options, cwd=folder)
        assert (folder / "m.joblib").exists() == (done.returncode == 0)
        return done.returncode, done.stderr

    return said


@pytest.mark.parametrize(("text", "options", "expected"), [
    ("a,y\n1,2\n2,3\n", ("--label", "y"), ""),
    (
        "a,target\n1,2\n2,3\n", (),
        "note: x.csv: nothing was left out as 'label' (columns.exclude): the file has no such column\n"
        "note: x.csv: 'target' is taken for a feature: is it the label (--label), or no feature "
        "(columns.exclude)?\n",
    ),
    ("a,target\n1,2\n2,3\n", ("--quiet",), ""),
    (",a,label\n0,1,2\n1,2,3\n", (), ""),  # the line of the features tells the names of rows
    ("3,1,label\n1,2,0\n2,3,0\n", (), ""),  # one name is none
    ("1,2\n1,2\n2,3\n", ("--no-header",), ""),
])  # fmt: skip
def test_what_is_said(said, tmp_path, text, options, expected):
    code, errors = said(tmp_path, text, *options)
    first, *notes = errors.splitlines(keepends=True) or [""]
    assert (code, "".join(notes)) == (0, expected)
    assert first.startswith("x.csv: ") != ("--quiet" in options)


WIDE = ",".join(f"c{i:02}" for i in range(40))


@pytest.mark.parametrize(("head", "config", "options", "expected"), [
    ("a,b", "", (), "2 features: a, b"),
    ("a,b,part,name,when", "columns: {exclude: [b]}", ("--split", "part"),
     "1 feature: a; left out: b (columns.exclude), part (--split), name, when (text)"),
    ("a,b,c", "columns: {include: [c]}", (), "1 feature: c; left out: a, b (not in columns.include)"),
    (",a,b", "", (), "2 features: a, b; left out: '' (names of rows)"),
    ("a,name", "code: name", (), "2 features: a, name; as categories: name"),
    (WIDE, "", ("--label", "c39"),
     "39 features: c00, c01, c02, c03, c04, c05, c06, c07, …, c37, c38; left out: c39 (--label)"),
    (WIDE, "columns: {include: [c00]}", (),
     "1 feature: c00; left out: c01, c02, c03, c04, c05, c06, c07, c08, …, c38, c39 (39, not in columns.include)"),
])  # fmt: skip
def test_features_and_what_is_left_out(said, tmp_path, head, config, options, expected):
    names = head.split(",")
    values = {"part": ("train", "test"), "name": ("x", "y"), "when": ("now", "then")}
    rows = [",".join(values.get(name, ("1", "2"))[i % 2] for name in names) for i in range(6)]
    text = "\n".join([head, *rows]) + "\n"
    step = "{kind: one_hot, columns: [name]}" if config == "code: name" else "{kind: minmax}"
    config = "" if config == "code: name" else config
    code, errors = said(tmp_path, text, *options, config=f"{config}\nsteps: [{step}]\n")
    assert (code, errors.splitlines()[0]) == (0, f"x.csv: {expected}")
    assert said(tmp_path, text, *options, "-q", config=f"{config}\nsteps: [{step}]\n") == (0, "")


@pytest.mark.parametrize("name", ["label", "Target", "y", "class", "ID", "customer_id", "y_true", "row id"])
def test_a_feature_whose_name_is_that_of_none(said, tmp_path, name):
    config = "steps: [{kind: minmax}]\n"
    text = f"a,{name}\n1,2\n2,3\n"
    _, errors = said(tmp_path, text, config=config)
    advice = "is it the label (--label), or no feature (columns.exclude)?\n"
    assert f"note: x.csv: {name!r} is taken for a feature: {advice}" in errors
    for more in (("--label", name), ("-q",)):
        assert "taken for a feature" not in said(tmp_path, text, *more, config=config)[1]
    meant = f"columns: {{include: [a, {name}]}}\n{config}"
    assert "taken for a feature" not in said(tmp_path, text, config=meant)[1]


@pytest.mark.parametrize("head", ["x,y", "yes,width", "Pclass,lid"])
def test_names_of_features(said, tmp_path, head):
    assert "taken for" not in said(tmp_path, f"{head}\n1,2\n2,3\n", config="steps: [{kind: minmax}]\n")[1]


def test_python_warns(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "target": [0, 1] * 3})
    config = {"steps": ["standardize", {"kind": "fourier", "n_components": 4, "frequencies": "iid"}]}
    with pytest.warns(KafeatWarning, match="^<table>: 'target' is taken for a feature") as warned:
        kafeat.fit(config, table)
    assert [one.filename for one in warned] == [__file__]
    with pytest.warns(KafeatWarning, match="'target' is taken for a feature") as warned:
        kafeat.evaluate(data=table, config=[config, {**config, "seed": 1}], seeds=2)
    assert [one.filename for one in warned] == [__file__]  # once, however many maps are fitted
    kafeat.fit(config, table, label="target")


def test_a_row_in_the_place_of_names(said, tmp_path):
    for head, code, told in (
        ("0.5,0.25", 0, "the names of the columns are numbers (0.5, 0.25, …); if the first line is a row"),
        ("0.5,0.5", 3, "expected one column of that name, got 2; rename one; is the first line a row (--no"),
    ):
        found, errors = said(tmp_path, f"{head}\n1,2\n2,3\n", config="steps: [{kind: minmax}]\n")
        assert (found, told in errors) == (code, True)


@pytest.mark.parametrize("names", ["0 1 2", "400.5 401 401.5", "0 0", "2 1", "7", "a 1", "nan 1"])
def test_names_that_rise_are_names(names):
    assert are_numbers(names.split()) == (names in ("0 0", "2 1", "7", "nan 1"))


@pytest.mark.parametrize("name", ["other.parquet", "x.CSV", "a.tsv.gz", "s3://bucket/x.arrow"])
def test_a_table_is_not_replaced_by_a_model(run, tmp_path, name):
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "x.csv").write_text("a,label\n1,2\n")
    done = run("fit --config c.yaml x.csv", name, cwd=tmp_path, code=2)
    assert f"{name}: expected the name of a model, such as map.joblib, got that of a table" in done.stderr


def test_codes_that_lose_their_zeros_as_numbers_are_told_once(said, tmp_path):
    text = "plz,at,big,a\n10115,0930,1000,0.5\n01067,1000,0,0\n01069,1100,2,1\n"
    lost = "zeros at the beginning are lost, as"
    rest = (
        "read as numbers. If the values are codes, {} keeps them as text: as categories in `tune`, and for "
    )
    rest += "`one_hot` in a config. --exclude {} leaves the {} out\n"
    config = "columns: {include: [plz, at, a, big]}\nsteps: [{kind: minmax}]\n"
    told = said(tmp_path, text, config=config)[1]
    both = rest.format("--text plz --text at", "plz,at", "columns")
    assert told.endswith(f"note: x.csv: 'plz' (01067), 'at' (0930): {lost} these columns are {both}")
    assert told.count("note:") == 1
    config = "steps: [{kind: one_hot, columns: [at]}, {kind: minmax}]\n"
    assert (
        f"'plz' (01067): {lost} this column is {rest.format('--text plz', 'plz', 'column')}"
        in said(tmp_path, text, config=config)[1]
    )
    config = "columns: {exclude: [plz, at]}\nsteps: [{kind: minmax}]\n"
    assert lost not in said(tmp_path, text, config=config)[1]


def test_python_warns_of_text_that_is_left_out():
    """The command has a line of its features, which callers in Python do not see."""
    table = pa.table({"a": [1.0, 2.0], "city": ["x", "y"], "part": ["train", "test"], "y": [0.0, 1.0]})
    recipe = {"steps": [{"kind": "minmax"}]}
    with pytest.warns(KafeatWarning, match="^<table>: left out as text: city; name them in a one_hot step"):
        kafeat.fit(recipe, table, label="y", split="part")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kafeat.fit({**recipe, "columns": {"exclude": ["city"]}}, table, label="y", split="part")
        kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["city"]}]}, table, label="y", split="part")


@pytest.mark.parametrize(("name", "given"), [("exclude", "c0,"), ("only", ["c0", " "])])
def test_columns_without_a_name_are_refused(name, given):
    with pytest.raises(UsageError, match=f"^--{name}: expected names of columns, got an empty one$"):
        kafeat.fit(["minmax"], [[1.0, 2.0], [2.0, 3.0]], **{name: given})
