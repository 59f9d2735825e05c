"""An analyst's own CSV: `tune FILE --label L` alone reads it as it is meant, or the option that it names does."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shlex
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

RNG = np.random.default_rng(5)


@pytest.fixture
def tuned(in_process, tmp_path):
    """Run `tune` of a text as a file; return the lines, and the config and the result if it ends well."""

    def run(text, label, *options, name="mine.csv", code=0, encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        best, found = tmp_path / "best.yaml", tmp_path / "found.json"
        words = f"tune DATA {best} --label {label} --trials 1 --overwrite --json {found}".split()
        words[1] = str(path)
        words += options
        done = in_process(*words, "--rows", "100", cwd=tmp_path)
        assert done.returncode == code, done
        if code:
            return done.stderr
        return done.stdout + done.stderr, yaml.safe_load(best.read_text()), json.loads(found.read_text())

    return run


def rows(*columns):
    return "".join(f"{';'.join(row)}\n" for row in zip(*columns, strict=True))


def test_columns_of_dates_are_times_or_have_a_line(tuned):
    days = [np.datetime64("2020-01-01") + i for i in range(120)]
    month = ["Jan", "Feb", "Mar", "Apr", "May"]
    y = [f"{i % 30}.5" for i in range(120)]
    short = [f"{day.item():%d}-{month[day.item().month - 1]}-20" for day in days]
    german = ["Jan", "Feb", "Mär", "Apr", "Mai"]
    german = [f"{day.item():%d} {german[day.item().month - 1]} 2020" for day in days]
    mixed = [f"{day.item():{'%d.%m.%Y' if i % 3 else '%Y-%m-%d'}}" for i, day in enumerate(days)]
    compact = [f"{day.item():%Y%m%d}" for day in days]
    weeks = [f"{day.item():%G-W%V}" for day in days]
    zone = [f"{day} 01:00 UTC" for day in days]
    text = "a;b;c;d;w;z;y\n" + rows(short, german, mixed, compact, weeks, zone, y)
    lines, config, _ = tuned(text, "y")
    assert "as times: a (%d-%b-%y), b (%d %b %Y), d (%Y%m%d), z (hours as written" in lines
    rest = "%d.%m.%Y: write all in one form)"
    told = "'w': looks like weeks or quarters, such as '2020-W01': write the first day of each, such as"
    assert told in lines
    assert f"c (looks like times, but some, such as '2020-01-01', are not in the form {rest}" in lines
    assert "c" in config["columns"]["exclude"]
    text = "a;y\n" + rows([f"{month[i % 5]}-{10 + i % 20}" for i in range(120)], y)
    assert "mine.csv: column 'a': looks like times: --date-format %b-%y reads" in tuned(text, "y")[0]
    lines, _, _ = tuned(text, "y", "--date-format", "%b-%y")
    assert "as times: a (%b-%y)" in lines


N = 60
HALVES, Y = [f"{i % 9}.5" for i in range(N)], [f"{i}.25" for i in range(N)]
REFUSED = {
    "two columns": (
        [
            "a;b;y",
            [f"0{1 + i % 9}/0{1 + i % 7}/2020" for i in range(N)],
            [f"{1 + i % 9},{100 + i}" for i in range(N)],
        ],
        r"'a': expected a time.* (--date-format %d/%m/%Y) or .*'b': row 1 .*: (--thousands ,) reads 1100;",
        "as times: a (%d/%m/%Y); with separators of thousands: b (,)",
    ),
    "a wrong encoding, and a label that is not there": (
        ["größe;b;z", HALVES, HALVES],
        r"^kafeat: \S+ line 1, byte 2: expected UTF-8.*(--encoding latin-1) reads it",
        "",
    ),
    "a marker among units": (
        ["a;b;y", [f"{one} kg" if i % 9 else "-999" for i, one in enumerate(HALVES)], HALVES],
        "got '-999'; (--null-values -999) reads it as missing",
        "with units: a (kg); missing in the first rows: a (-999: 7)",
    ),
}
FOR = ["config", "--for", "mine.csv", "--label"]


@pytest.mark.parametrize("case", REFUSED)
def test_the_remedy_reads_the_same_file_and_a_starting_config_says_the_same(
    tuned, in_process, tmp_path, case
):
    (names, *columns), told, said = REFUSED[case]
    text = f"{names}\n" + rows(*columns, Y)
    lines, started = tuned(text, "y", code=3, encoding="latin-1"), in_process(*FOR, "y", cwd=tmp_path)
    assert started.returncode == 3
    found = re.search(told, lines, re.DOTALL)
    assert re.search(told, " ".join((started.stdout + started.stderr).replace("\n#", " ").split()), re.DOTALL)
    remedy = [word for option in found.groups() for word in shlex.split(option)]
    assert said in tuned(text, names[-1], *remedy, encoding="latin-1")[0]
    started = in_process(*FOR, names[-1], *remedy, cwd=tmp_path)
    assert re.search(f"  {names[0]}.*: .* -> (kept as numbers|date_parts)", started.stdout), started


def test_odd_values_are_told_and_the_remedy_reads_them(tuned):
    days = [f"0{1 + i % 9}/{13 + i % 15}/2020" for i in range(N)]
    columns = {
        "excel": [f'="0{i % 9}"' for i in range(N)], "mark": ["-999.0" if i % 9 == 3 else HALVES[i] for i in range(N)],
        "gap": ["NA", *HALVES[1:]], "code": [f"{10 + i % 9}E0{i % 9}" for i in range(N)],
        "zip": ["98101-1234", *["98052", "10001", "02139"] * 20][:N],
        "lakh": [f"{1 + i % 9},16,{100 + i}" for i in range(N)], "day": days, "icd": ["1E50", "250", "428"] * 20,
        "few": ["1E05", "250", "428"] * 20,
    }  # fmt: skip
    text = ";".join([*columns, "y"]) + "\n" + rows(*columns.values(), Y)
    lines, config, _ = tuned(text + "Total" + 9 * ";" + "1770.0\n", "y")
    assert "row 61 looks like a line of totals ('Total'): head -n 61 " in lines
    assert "column 'code': values such as '10E00' are read as codes" in lines
    icd = (
        "column 'icd': values such as '1E50' are read as codes and not as numbers, as others are such as 250"
    )
    assert icd in lines
    assert "column 'few': 1E05 is read as 100000; --text few keeps the column as text" in lines
    assert "column 'excel': values such as =\"00\" are no numbers, and remain text" in lines
    assert "with separators of thousands: lakh (,)" in lines
    (coded,) = (step["columns"] for step in config["steps"] if step["kind"] == "one_hot")
    assert coded == ["excel", "code", "zip", "icd"]
    remedy = re.search("'mark' .*: if .*, (--null.*) reads", lines)[1]
    lines = tuned(text, "y", *shlex.split(remedy))[0]
    assert "missing in the first rows: mark (-999.0: 7), gap (NA: 1)" in lines
    mixed = tuned(text.replace("01/13/2020", "13/01/2020"), "y", code=3)
    told = "'day': expected times in one form, got '02/14/2020' and '13/01/2020': write all in one form"
    assert told in mixed


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["NEW.csv", "a b.csv", "x.clean.csv", "t.csv.gz", "wide.csv"])
@pytest.mark.parametrize("start", ["Report of 2020\n\n", "sep=;\nReport of 2020\n"])
def test_what_writes_a_file_leaves_the_table_as_it_is(tuned, tmp_path, name, start):
    text = f"{start}a;y\n{rows(HALVES, Y)}Total;1770.0\n".encode("utf-16" if name == "wide.csv" else "utf-8")
    told = ["--encoding", "utf-16"] if name == "wide.csv" else []
    text = gzip.compress(text) if name.endswith("gz") else text
    lines = tuned(text, "y", *told, code=3, name=name)
    names, totals = "the names may be in line 3: (.*) leaves out those", "totals .'Total'.: (.*) leaves it"
    for code, pattern in enumerate((names, totals)):
        remedy = re.search(pattern, lines)[1]
        subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
        assert (tmp_path / name).read_bytes() == text
        made = Path(shlex.split(remedy)[-1])
        assert made.name.count(".clean") == 1 + code + (name == "x.clean.csv")
        lines = tuned((tmp_path / made).read_bytes(), "y", code=(3, 0)[code], name=made)
    assert "label: numbers (60 different numbers in 60 rows)" in lines[0]


@pytest.mark.parametrize("name", ["NEW.csv", "predictions.csv"])
def test_the_next_lines_name_other_files_than_the_table(tuned, name):
    lines, _, _ = tuned("a;y\n" + rows(HALVES, Y), "y", "--predictor", "ridge", name=name)
    words = re.search("next: (kafeat predict .*)", lines)[1].split()
    assert len({*words[-2:], name}) == 3


def test_labels_that_are_alike_or_times_are_said(tuned):
    alike = ["Yes", "yes", "No", "no "] * 15
    lines, _, _ = tuned("a;y\n" + rows(HALVES, alike), "y")
    assert "; 'No' and 'no ' are two classes: write them alike" in lines
    text = "a;y\n" + rows(HALVES, ["yes", "no", "N/A"] * 20)
    assert "'N/A' is a class: --drop-unlabelled --null-values N/A leaves such rows out" in tuned(text, "y")[0]
    for empty, more in ((text.replace("N/A", ""), []), (text, ["--null-values", "N/A"])):
        lines = tuned(empty, "y", "--drop-unlabelled", *more)[0]
        assert "label: classes (2 different texts in 40 rows)" in lines
    days = [f"2020-01-{10 + i % 4}" for i in range(N)]
    lines, _, _ = tuned("a;y\n" + rows(HALVES, days), "y")
    assert "the values are times, such as '2020-01-10', and each" in lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_labels_next_to_one_word_can_be_a_class(tuned, tmp_path, end):
    text = "a;y\n" + rows(HALVES, ["Yes", "", ""] * 20)
    remedy = re.search("awk .* > mine.clean.csv", tuned(text.replace("\n", end), "y", code=3))[0]
    subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
    lines = tuned((tmp_path / "mine.clean.csv").read_bytes(), "y", name="x.csv")[0]
    assert "label: classes (2 different texts in 60 rows)" in lines


def test_columns_that_say_nothing_of_new_rows_are_left_out_and_said(tuned):
    n, kinds = 60, "abc"
    text = "nr;t_id;pop;land;c;x;y\n" + rows(
        [str(1000 + i) for i in range(n)], [str(7 * i % 61 + 5) for i in range(n)], [str(i * i + 10) for i in range(n)],
        ["DE"] * n, [kinds[i % 3] for i in range(n)], [f"{i % 7},5" for i in range(n)],
        [f"{i % 7},25" for i in range(n)],
    )  # fmt: skip
    lines, config, found = tuned(text, "y")
    assert "left out: nr (counts the rows), t_id (an id), land (constant), y (--label)" in lines
    assert "pop: different whole numbers in all rows, kept as numbers; --exclude leaves them out" in lines
    assert config["columns"] == {"exclude": ["nr", "t_id", "land"]}
    assert "Left out: land (constant)." in found["notes"]
    excluded = ["pop", "c", "nr", "t_id", "land"]
    assert tuned(text, "y", "--exclude", "pop,c")[1]["columns"] == {"exclude": excluded}
    assert tuned(text, "y", "--only", "nr, x,l*")[1]["columns"] == {"include": ["nr", "x", "l*"]}
    both = tuned(text, "y", "--only", "x", "--exclude", "nr", code=2)
    assert "--exclude: expected no --only with it, got both" in both
    assert "expected the column 'z'" in tuned(text, "y", "--only", "z", code=3)


def test_columns_are_asked_for_in_fit_and_evaluate(run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,c,y\n" + "".join(f"{i % 5},{i % 7},{i},{i % 3}.5\n" for i in range(60)))
    (tmp_path / "r.yaml").write_text("steps: [{kind: standardize}, {kind: ridge}]\n")
    for options, columns in ((("--exclude", "c"), "a, b"), (("--only", "a,c"), "a, c")):
        words = "fit --config r.yaml mine.csv m.joblib --overwrite --label y"
        said = run(words, *options, cwd=tmp_path).stderr
        assert f"2 features: {columns}; left out: " in said
        assert run("inspect m.joblib", cwd=tmp_path).stdout.count(f"columns: {columns}\n") == 1
        said = run("evaluate --config r.yaml mine.csv --label y", *options, cwd=tmp_path).stderr
        assert f"2 features: {columns}; left out: " in said


@pytest.mark.parametrize("predictor", [["--predictor", "ridge"], []])
def test_the_next_lines_work_for_new_rows(tuned, run, tmp_path, predictor):
    rates = [f"{i % 17},5 %" for i in range(80)]
    text = "größe;rate\n" + rows([f"{1 + i % 17}.000 €" for i in range(80)], rates)
    lines, _, _ = tuned(text, "rate", "--encoding", "cp1252", *predictor, encoding="cp1252")
    fit, use = re.findall("^next: kafeat (.*)", lines, re.MULTILINE)
    assert "The fit takes about " in lines
    run(*shlex.split(fit), cwd=tmp_path)
    (tmp_path / "NEW.csv").write_text("größe\n3.000 €\n14.500 €\n", encoding="cp1252")
    run(*shlex.split(use), cwd=tmp_path)
    if predictor:
        found = np.loadtxt(tmp_path / "predictions.csv", skiprows=1)
        np.testing.assert_allclose(found, [2.5, 14.0], atol=0.6)
    else:
        assert pq.read_metadata(tmp_path / "features.parquet").num_rows == 2


def test_a_starting_config_shows_a_value_of_each_column_as_it_is_read(run, tmp_path):
    values = [
        [f"{1 + i}.234,50 €" for i in range(9)], [f"0{1 + i} Jan 2012" for i in range(9)],
        [f"2020010{1 + i}" for i in range(9)], ["\\N", *"12345678"], [f"({i + 5})" for i in range(9)], ["x"] * 9,
        list("123456789"),
    ]  # fmt: skip
    (tmp_path / "mine.csv").write_text("a;b;c;d;e;f;y\n" + rows(*values))
    text = run("config --for mine.csv --label y", cwd=tmp_path).stdout
    shown = "1234.5 2012-01-01T00:00:00 2020-01-01T00:00:00 1.0 -5 x"
    for name, value in zip("abcdef", shown.split(), strict=True):
        assert re.search(rf"#   {name}: .*, such as {re.escape(value)} -> ", text), text


@pytest.mark.parametrize("word", ["oops", "#DIV/0!", "inf", "-Infinity"])
def test_a_stray_word_among_the_numbers_of_a_label_is_named_with_the_remedy(
    tuned, in_process, tmp_path, word
):
    y = [word if i == 20 else f"{i % 9 * 1.5}" for i in range(60)]
    text = "x;y\n" + rows([f"{i % 7}" for i in range(60)], y)
    lines = tuned(text, "y", code=3)
    remedy = re.search(r"label 'y': .*(--null-values '?[^ ']*'?) ", lines)[1]
    assert "--drop-unlabelled" in lines
    lines, _, _ = tuned(text, "y", *shlex.split(remedy), "--drop-unlabelled")
    assert "label: numbers (9 different numbers in 59 rows)" in lines
    assert in_process(*FOR, "y", *shlex.split(remedy), cwd=tmp_path).returncode == 0


@pytest.mark.sampled
@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("end", ["\n", " \r\n"])
def test_a_delimiter_at_the_end_of_rows_only_is_left_out_by_the_remedy(tuned, tmp_path, mark, end):
    told = ["--delimiter", "tab" if mark == "\t" else mark]
    lines = [mark.join(row) for row in zip(HALVES, "uv" * 30, Y, strict=True)]
    text = (mark + end).join([mark.join("aby"), *lines, ""])
    lines = tuned(text.replace(f"y{mark}{end}", "y\n", 1), "y", *told, code=3)
    remedy = re.search("a delimiter at the end of each: (.*) leaves it out", lines)[1]
    subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
    assert "label: numbers (60 " in tuned((tmp_path / "mine.clean.csv").read_bytes(), "y", name="x.csv")[0]


BESIDE = {
    "names of groups": "A;;B;\na;b;y;z\n{rows}",
    "names of groups that repeat": ";A;A;B\na;b;y;z\n{rows}",
    "units": "a;b;y;z\n[m];[s];[kg];\n{rows}",
    "notes": "a;b;y;z\n{rows}\nSource: the shop; 2020\nAll rights reserved\n",
    "notes at once": "a;b;y;z\n{rows}Source: the shop\n",
    "columns without names": "a;b;y;;\n{rows}",
    "blanks": "  a  b  y  \n{blanks}",
    "three lines of names": 'a;b;y;z\nAlpha;Beta;"How much,\nin all?";\nid a;id b;id y;\n{rows}',
    "quoted lines": '"Account:";"12/3";\n\n"From:";"1.1.2020";\n"a";"b";"y";""\n{rows}',
    "rules": " a | b | y | z \n---+---+---+---\n{ruled}(60 rows)\n",
    "a name twice": "a;a;y;z\n{rows}",
    "short rows": "a;b;y;z\n{short}",
    "totals and notes": "a;b;y;z\n{rows}\nTotal;;1770.0;\nMade by hand;;;\n",
    "names of rows": "a;b;y\n{named}",
}


def test_a_copy_of_a_column_with_its_name_is_told(tuned):
    told = "numbers them; y.2: the same values as in an earlier column; --exclude y.2 leaves this column out"
    assert told in tuned("y;a;y\n" + rows(Y, HALVES, Y), "y", code=3)
    assert "the same values" not in tuned("a;a;y\n" + rows(HALVES, HALVES[::-1], Y), "y", code=3)


def test_lines_of_totals_between_the_rows_are_left_out_by_the_remedy(tuned, tmp_path):
    groups = [f"{'ab'[i % 2]};{i}.5;{i}\n" for i in range(N)]
    sums = [f"Subtotal {i // 20};{sum(range(i, i + 20)) + 10:,};{i}.5\n" for i in range(0, N, 20)]
    table = "".join("".join(groups[20 * i : 20 * i + 20]) + one for i, one in enumerate(sums))
    lines = tuned(f"site;Total;y\n{table}Grand total;1,800;90\n", "y")[0]
    assert "rows such as 21 look like lines of totals ('Subtotal 0'): sed" in lines
    subprocess.run(re.search("sed .* > mine.clean.csv", lines)[0], shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "mine.clean.csv").read_text() == f"site;Total;y\n{''.join(groups)}"
    quantities = "".join(f"{['F', 'M', 'Total', 'Media'][i % 4]};{i % 7}.5;{i}\n" for i in range(N))
    assert "look like" not in tuned(f"site;x;y\n{quantities}c;7;8\n", "y")[0]


@pytest.mark.parametrize("case", BESIDE)
def test_what_stands_beside_the_table_is_left_out_by_the_remedy(tuned, tmp_path, case):
    last = ["", ";"][case.startswith("columns")]
    table = rows(HALVES, HALVES, Y, [last] * N)
    others = {"blanks": table.replace(";", "  "), "ruled": table.replace(";", " | ")}
    others |= {"short": table.replace(";\n", "\n", 9), "named": rows(map(str, range(N)), HALVES, HALVES, Y)}
    told = ["--delimiter", ";"] if case in ("short rows", "names of rows") else []
    lines = tuned(BESIDE[case].format(rows=table, **others), "y", *told, code=3)
    remedy = re.search("(?:sed|tail|head|awk) .* > mine.clean.csv", lines)[0]
    subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
    lines = tuned((tmp_path / "mine.clean.csv").read_bytes(), "y", name="x.csv")[0]
    assert "label: numbers (60 different numbers in 60 rows)" in lines
    assert ("(no values)" in lines) == (not last and case not in ("blanks", "names of rows"))


def test_a_first_line_of_values_names_the_option_that_reads_it_as_a_row(tuned):
    text = rows(["north", "south"] * 30, HALVES, Y)
    for label in ("c2", "0.25"):
        found = tuned(text, label, code=[0, 3][label == "c2"])
        remedy = re.search(
            "if the first line is a row, read it with (--no-h.*)|is the first line a row .(--no-h.*)[)]",
            "".join(map(str, found)),
        )
        assert "label: numbers (60 " in tuned(text, "c2", remedy[1] or remedy[2])[0]
    assert "--no-header" not in tuned("land;2019;2020\n" + text, "2020")[0]


@pytest.mark.parametrize(
    "row", ["'O''Bri\"en, {0}','{1}'", ' "O\'Bri""en, {0}", {1}', '"O\'Bri\\"en, {0}",{1}']
)
def test_other_quotes_are_written_as_usual_by_the_remedy(tuned, tmp_path, row):
    text = "a,y\n" + "".join(row.format("uvw"[i % 3], y) + "\r\n" for i, y in enumerate(Y))
    remedy = re.search("sed .* > mine.clean.csv", tuned(text, "y", code=3))[0]
    subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
    made = (tmp_path / "mine.clean.csv").read_text()
    assert [line[0] for line in csv.reader(made.splitlines()[1:4])] == [f"O'Bri\"en, {one}" for one in "uvw"]
    assert "label: numbers (60 different" in tuned(made, "y", name="x.csv")[0]


@pytest.mark.parametrize(
    ("encoding", "word"),
    [("cp1251", "Налог"), ("cp1253", "Ημέρα"), ("cp932", "日付です"), ("gb18030", "金额合计日期总数"),
     ("cp949", "합계"), ("cp1250", "město"), ("cp932", "住宅の表"), ("cp850", "Käufer früher"), ("cp950", "價格"),
     ("mac-roman", "Größe der Käufer"), ("koi8-r", "Налог"), ("cp866", "Налог"), ("cp874", "กรุงเทพมหานคร")],
)  # fmt: skip
def test_the_error_about_bytes_names_the_encoding(tuned, encoding, word):
    text = f"{word};y\n" + rows([f"{word} {i % 3}" for i in range(N)], Y)
    told = re.search(r"--encoding (\S+)", tuned(text, "y", code=3, encoding=encoding))[1]
    assert told == encoding
    assert f"1 feature: {word}" in tuned(text, "y", "--encoding", told, encoding=encoding)[0]


def test_accents_before_small_letters_are_not_chinese(tuned):
    text = "mês;y\n" + rows(["não", "é", "Cartão"] * 20, Y)
    assert "; --encoding latin-1 reads" in tuned(text, "y", code=3, encoding="latin-1")


def test_a_table_of_blanks_in_a_txt_is_no_list_of_files(tuned, tmp_path):
    text = "a y\n" + rows([f"{half:8}" for half in HALVES], Y).replace(";", " ")
    told = shlex.split(re.search("name the format: (.*)", tuned(text, "y", name="x.txt", code=2))[1])
    remedy = re.search("(sed .*) writes commas", tuned(text, "y", *told, name="x.txt", code=3))[1]
    subprocess.run(remedy, shell=True, cwd=tmp_path, check=True)
    made = (tmp_path / "x.clean.txt").read_bytes()
    assert "label: numbers (60 " in tuned(made, "y", *told, name="x.clean.txt")[0]
    listed = "no such file.csv\nnor this one.csv\n"
    assert "expected a file, got none of" in tuned(listed, "y", name="x.txt", code=3)


def test_a_file_of_a_data_set_by_folders_names_the_folder(run, in_process, tmp_path):
    for year in (2023, 2024):
        (folder := tmp_path / "data" / f"year={year}").mkdir(parents=True)
        (folder / "a.csv").write_text("x\n1.5\n2.5\n")
    (tmp_path / "c.yaml").write_text("steps: [{kind: minmax}]\n")
    run("fit --config c.yaml data m.joblib", cwd=tmp_path)
    transform = ["transform", "--model", "m.joblib"]
    told = in_process(*transform, "data/year=2024/a.csv", "z.csv", cwd=tmp_path).stderr
    folder = re.search("names of folders contain it: give the folder (.*) instead of", told)[1]
    run(*transform, folder, "out", cwd=tmp_path)
    assert (tmp_path / "out" / "year=2024").is_dir()
    (tmp_path / "one.csv").write_bytes((tmp_path / folder / "year=2024/a.csv").read_bytes())
    told = in_process(*transform, "one.csv", "z.csv", cwd=tmp_path).stderr
    assert "put the file into a folder such as year=VALUE, and give the folder above that" in told


def test_where_no_column_is_left_the_reasons_are_said(tuned):
    text = "t;id;y\n" + rows(
        [f"{i % 24:02}:{i:02}" for i in range(60)], [f"n{i}" for i in range(60)], ["1.5", "2"] * 30
    )
    lines = tuned(text, "y", code=3)
    assert (
        "got none (t: looks like hours and minutes: --date-format %H:%M reads '00:00' as a time of day; write lengths"
        in lines
    )
    assert "id: 60 different values in 60 rows, few words: names of rows)" in lines


def test_units_of_several_scales_or_of_no_column_are_said(tuned):
    mixed = [f"{100 + i} kg" if i % 2 else f"{i}.5 t" for i in range(N)]
    words = "a;b;y\n" + rows(mixed, HALVES, Y)
    faults = "a;b;y\n" + rows(mixed[:40] + mixed[1:2] * 20, ["?!", *HALVES[1:]], Y)
    assert "values such as '0.5 t' and '101 kg' have several units" in tuned(words, "y")[0]
    powers = "a;b;y\n" + rows([f"{i}.5{'MB'[i % 7 > 3]}" for i in range(N)], HALVES, Y)
    assert "values such as '0.5M' and '4.5B' have several units: write all in one" in tuned(powers, "y")[0]
    lines = tuned(words, "y", "--unit", "kg", "--unit", "t", "--unit", "g/l")[0]
    assert "'a': '101 kg' and '0.5 t' are read on one scale, because --unit names both units" in lines
    assert "--unit g/l: no numbers in the first rows have it, in none of a, b, y" in lines
    told = tuned(faults, "y", code=3).splitlines()
    assert ["expected one unit" in line for line in told] == [True, False]
    assert "'b': expected a number, got '?!'; --null-values '?!' reads it" in told[1]


TIMES = [datetime(2022, 1, 5, 3, 7, 11) + timedelta(days=37 * i, hours=5 * i) for i in range(N)]
DAYS = [f"{time:%d/%m/%Y}" for time in TIMES]
SECONDS = [int((time - datetime(1970, 1, 1)).total_seconds()) for time in TIMES]


def now_and_then(word, others):
    return [one if i % 10 else word for i, one in enumerate(others)]


NAMED = {
    "months in digits": ([f"{time:%Y%m}" for time in TIMES],
        r"(--date-format %Y%m) reads 202201; so far, it is read as numbers; --exclude a leaves",
        "a: times, .* 2022-01-01T"),
    "days first, in digits": ([f"{time:%d%m%Y}" for time in TIMES], r"(--date-format %d%m%Y) reads [0-9]{8};",
        "a: times, .* 2022-01-05T"),
    "ordinals": (["1st", *(f"{i % 17 + 4}th" for i in range(1, N))],
        "got .* write all in one; .*, and (--text a) keeps it", "a: text, 18 different"),
    "times of day": ([f"{time:%I:%M %p}" for time in TIMES], r"(--date-format '%I:%M %p') reads '03:07 AM' as a time",
        "a: times, .* 1970-01-01T03:07:00"),
    "seconds": (SECONDS, r"looks like times: (--date-format %s) reads 1641352031;", "a: times, .* 2022-01-05T03:07:11"),
    "milliseconds": ([f"{one}000" for one in SECONDS], r"like times: (--date-format %Q) reads 1641352031000; ",
        "a: times, .* 2022-01-05T03:07:11"),
    "the end of time": (now_and_then("9999-12-31", [f"{time:%Y-%m-%d}" for time in TIMES]),
        r"far from all others: 'a' \(9999-12-31\): if .*, (--null-.*) reads", "a: times, .* 2022-02-11T"),
    "no day": (now_and_then("00/00/0000", DAYS),
        r"'a': expected a time as %d/%m/%Y, got '00/00/0000'; (--null-values 00/00/0000) reads",
        "a: times, .* 2022-02-11T"),
    "few days": ([DAYS[i % 6] if i % 4 else "none" for i in range(N)],
        r"looks like times, but some, such as 'none', are not in the form %d/%m/%Y: (--null-values none) reads",
        "a: times, .* 2022-02-11T"),
    "words and a number": ([["5 (high)", "2", "3", "4", "1 (low)"][i % 5] for i in range(N)],
        r"write 5 if .*; (--text a) keeps .*; --null-values '5 \(high\)' --null-values '1 \(low\)' reads these",
        "a: text, 5 different"),
    "an open end": (["0", "1", "2", "3+"] * 15,
        r"got '3\+'; --unit \+ reads 3; --text a keeps .*; (--null-values 3\+) reads", "a: numbers, .* 15 missing"),
    "a bound": (now_and_then("<0.5", Y), r"got '<0.5'; --unit '<' reads 0.5; (--null-values '<0.5') reads it as",
        "a: numbers, .* 6 missing"),
    "bounds and a word": (now_and_then("n.d.", now_and_then("<0.5", [*Y[1:], "1"])[::-1]),
        r"got 'n.d.'; (--unit '<' --null-values n.d.) reads it", "a: numbers, .* 6 missing"),
    "flags": ([f"{i}.5 {'HL'[i % 3]}" if i % 3 < 2 else "7" for i in range(N)], r"(--unit H --unit L) reads",
        "a: numbers, .* 0.5 "),
    "many bounds": ([f"{'<>'[i % 4]}{i}" if i % 4 < 2 else "7" if i % 4 < 3 else "neg." for i in range(N)],
        r"no numbers; (--unit '<' --unit '>' --null-values neg.) reads them", "a: numbers, .* 15 missing"),
    "laps of minutes": ([f"1:0{i % 10}.{i:02}" if i % 3 else f"5{i % 10}.87" for i in range(N)],
        "minutes and seconds: write 62.35 for 1:02.35; .*(--exclude a) leaves", "y: left out"),
    "some laps of minutes": (now_and_then("1:02.35", Y),
        "got '1:02.35'; write lengths of time in one unit, such as 2.75 h; (--exclude a)", "y: left out"),
    "marks of significance": ([f"{i}.5{'*' * (i % 4)}" for i in range(N)],
        r"left out: .* no numbers; (--unit '\*' --unit '\*\*' --unit '\*\*\*') reads", "a: numbers"),
    "degrees": ([f"{i}.5° {'EW'[i % 2]}" for i in range(N)], "one; (--unit '° E' --unit '° W=-1') reads", "a: numbers"),
    "versions": (["1.2", "1.8", "1.9", "1.10", "1.11", "2.0"] * 10,
        r"'a' \(1.10\): zeros at the end are lost, .*, (--text a) keeps", "a: text, 6 different"),
    "codes with a point": (["8471.30", "0901.21"] * 30,
        r"'a' \(0901.21\): zeros at the beginning are lost, .*, (--text a) keeps", "a: text, 2 different"),
    "codes with an E": (["1E5", "7E9", "12E5"] * 20, "1E5 is read as 100000; (--text a)", "a: text, 3 different"),
    "codes with letters": ([["V45", "250.83", "E909", "428", "?", "715.5", "41"][i % 7] for i in range(N)],
        r"got '(?:V45|E909|\?)'; (--text a) keeps the column as text; --null-values", "a: text, 7 different"),
    "ranks of which some are tied": ([["T21", "7", "T3", "CUT", "15", "42", "8"][i % 7] for i in range(N)],
        r"got 'T21'; --text a keeps the column as text; (--unit T --null-values CUT) reads 21", "a: numbers, 6 "),
    "crowns": ([f"{i} 7{i:02}:-" for i in range(1, N + 1)], r"are no numbers; (--unit :-) reads", "a: numbers, 60 "),
    "a power": (now_and_then("1.5x10^3", Y), r"got '1.5x10\^3'; write 1.5e3 if .*; (--null-.*) reads", "a: numbers"),
    "shares and per cent": ([f"{i}.1%" if i % 5 else "0.507" for i in range(N)],
        r"got '0.507'; (--unit %) reads 0.507; 50 % is then 50, next to 0.5: --unit %=0.01 makes it", "a: numbers"),
    "a unit and a separator": ([*HALVES[1:], "$1,234.5"], r"(--thousands , --unit '\$') reads 1234\.5", "a: numbers"),
    "a code among numbers": (["0A", *HALVES[1:]], "(--null-values 0A) reads it", "a: numbers, .* 1 missing"),
    "money by the month": ([f"${100 + i * i % 37}/mo" for i in range(N)],
        r"no numbers; (--unit '\$' --unit /mo) reads 100 of it", "a: numbers"),
    "money of two scales": ([f"${i}.2M" if i % 5 else f"${i}K" for i in range(N)],
        r"'\$1.2M' and '\$0K': write all in one; (--unit '\$' --unit K=1000 --unit M=1e6) reads them", "a: .*"),
    "lengths of time": ([f"{i} min" if i % 5 else f"1 h {i} min" for i in range(N)],
        r"got '1 h 0 min'; write lengths of time in one unit, such as 2.75 h; (--exclude a)", "y: left out"),
    "units of two scales": ([f"{i} °C" if i % 5 else f"{i} °F" for i in range(N)],
        r"got '1 °C' and '0 °F': write all in one; (--exclude a) leaves this column out", "y: left out"),
    "a number that others have": (now_and_then("99", [str(i % 7) for i in range(N)]),
        r"'a' \(99\): if .*, (--null-values 99) reads them so, and also those in c \(99\); if those are",
        "a: numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMED)
def test_a_named_option_reads_the_same_file(in_process, tuned, tmp_path, case):
    values, told, read = NAMED[case]
    text = "a;b;c;y\n" + rows(map(str, values), HALVES, map(str, range(50, 50 + N)), Y)
    (tmp_path / "mine.csv").write_text(text)
    first = in_process(*FOR, "y", cwd=tmp_path)
    found = re.search(told, " ".join((first.stdout + first.stderr).replace("\n#", " ").split()))
    assert found, first
    if "--exclude" in found[1]:
        assert tuned(text, "y", *shlex.split(found[1]))[1]["columns"] == {"exclude": ["a", "c"]}
        return
    again = in_process(*FOR, "y", *shlex.split(found[1]), cwd=tmp_path)
    assert re.search(f"#   {read}", again.stdout), again


def test_decimals_with_and_without_a_zero_at_their_end_are_not_codes(tuned):
    prices = [f"{i % 7 / 10 + i % 2 / 4:.2f}" for i in range(N)]
    lines = tuned(
        "a;b;y\n"
        + rows([one.removesuffix("0") for one in prices[:30]] + prices[30:], ["1E+05", "2e3"] * 30, Y),
        "y",
    )[0]
    assert "2 features" in lines
    assert "--text" not in lines


@pytest.mark.parametrize("form", ["T{}", "{} 712:-"])
def test_a_label_with_letters_or_dashes_next_to_its_numbers_is_read_by_the_remedy(tuned, form):
    text = "a;y\n" + rows(
        HALVES, [form.format(i + 1) if i % 3 < 1 or ":" in form else str(i + 1) for i in range(N)]
    )
    remedy = re.search("(--unit [^ ;]+)", tuned(text, "y", code=3))[1]
    assert "label: numbers (60 different" in tuned(text, "y", *shlex.split(remedy))[0]


def test_years_of_two_digits_that_are_read_as_later_ones_are_told(tuned):
    born = [f"{1 + i % 28:02}/0{1 + i % 9}/{1935 + i}" for i in range(N)]
    short = "a;b;y\n" + rows([one[:6] + one[8:] for one in born], HALVES, Y)
    told = "'a': years of two digits are read as 1969 to 2068, also in 17/08/51: write all with four"
    assert told in tuned(short, "y")[0]
    assert "years of two" not in tuned("a;b;y\n" + rows(born, HALVES, Y), "y")[0]


def test_numbers_of_documents_are_no_times_of_later_years(tuned):
    text = "a;b;y\n" + rows([str(1900000000 + i * i % 97 * 7) for i in range(N)], HALVES, Y)
    assert "looks like times" not in tuned(text, "y")[0]


def test_where_no_map_can_be_fitted_more_trials_are_the_remedy(tuned):
    text = "a;y\n" + rows([f"v{i % 200}" for i in range(600)], [f"{i}.5" for i in range(600)])
    options = ["--predictor", "ridge", "--columns", "16", "--rows", "600"]
    more = re.search("no trial has a score: (--trials [0-9]+) tries", tuned(text, "y", *options, code=3))[1]
    assert tuned(text, "y", *options, *more.split())[2]["score_name"] == "R²"


def test_a_label_with_bounds_is_read_by_the_remedy(tuned):
    text = "a;y\n" + rows(HALVES, now_and_then("<0.5", Y))
    remedy = re.search("label 'y': .* so all are text; (--unit '<') reads 0.5; ", tuned(text, "y", code=3))[1]
    assert "label: numbers (55 different numbers in 60 rows)" in tuned(text, "y", *shlex.split(remedy))[0]


def test_numbers_of_a_label_that_may_stand_for_missing_values_are_told_with_the_remedy(tuned):
    text = "a;y\n" + rows(HALVES, now_and_then("-999", Y))
    told = r"far from all others: 'y' \(-999\): if .*, (--null-values -999) reads them so; .* (--drop-unlabelled)"
    remedy = re.search(told, tuned(text, "y")[0])
    assert "6 rows without a label left out" in tuned(text, "y", *remedy.groups()[0].split(), remedy[2])[0]


def test_a_line_of_totals_is_told_where_its_label_is_refused(tuned):
    text = "a;b;y\n" + rows(["u", "v", "w"] * 20, HALVES, Y)
    told = tuned(f"{text};;\nSumme:;270.0;\n", "y", code=3)
    missing = "row 61 (index 60), label 'y': expected a value, got null: --drop-unlabelled leaves such rows"
    assert missing in told
    assert "row 62 looks like a line of totals ('Summe:'): head -n 62 " in told
    assert tuned(f"{text};;\n", "y", "--drop-unlabelled")[2]["score_name"] == "R²"


def test_hours_and_pairs_of_numbers_are_no_groups_and_a_label_of_hours_gets_their_note(
    tuned, in_process, tmp_path
):
    clock = [f"{i % 24:02}:3{i % 2}" for i in range(N)]
    pairs = [f"{110 + i % 9}/{70 + i % 4}" for i in range(N)]
    lines, _, found = tuned("t;p;b;y\n" + rows(clock, pairs, HALVES, Y), "y")
    assert "looks like hours and minutes" in lines
    assert not any("--split-by" in note for note in found["notes"])
    _, _, found = tuned("a;y\n" + rows(HALVES, ["yes", "no", "no"] * 20), "y")
    told = "add `- kind: logistic` to its steps, or search with --predictor logistic"
    assert any(told in one for one in found["notes"])
    (tmp_path / "mine.csv").write_text("a;y\n" + rows(HALVES, clock))
    said = " ".join(in_process(*FOR, "y", cwd=tmp_path).stdout.replace("\n#", " ").split())
    assert "label: classes (24 different texts in 60 rows); text is no number" in said
    told = "label 'y': looks like hours and minutes: --date-format %H:%M reads '00:30' as a time of day"
    assert told in said


def test_a_minus_behind_its_number_is_said(tuned):
    lines, _, _ = tuned("a;y\n" + rows([f"{300 + i},48{'-' * (i % 3 == 0)}" for i in range(N)], Y), "y")
    assert "with 5- for -5: a; with decimal commas: a" in lines
