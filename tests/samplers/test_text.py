"""Texts: against scikit-learn's TfidfTransformer, from every format, and with other kinds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.chain.tiles import LEAST_ROWS
from kafeat.contract.ngrams import BUCKETS, count_ngrams
from kafeat.contract.tile import SparseRows
from kafeat.errors import ConfigError, DataError, UsageError
from kafeat.maths.content_folds import folds_of, sparse_hashes
from kafeat.samplers.text import Text
from tests.contract.test_ngrams import HOSTILE
from tests.jobs.files import transform_file
from tests.recipes import words

ROWS = 700


def sentences(rows: int = ROWS, seed: int = 0) -> list[str | None]:
    """Texts of a few words out of forty, some of them missing and some empty."""
    rng = np.random.default_rng(seed)
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(3, 9)))) for _ in range(40)]
    texts = [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(rows)]
    return [None if i % 50 == 7 else "" if i % 50 == 9 else text for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"a": rng.normal(size=ROWS), "review": sentences(), "b": rng.normal(size=ROWS)})


def config(columns=("review",), n: int = 32, more=(), **keys: object) -> dict[str, object]:
    step = {"kind": "text", "columns": list(columns), "n_components": n, **keys}
    return {"dtype": "float64", "steps": [step, *more]}


def oracle(texts: list[str | None], fitted: list[str | None]) -> np.ndarray:
    """The unit rows by scikit-learn, from the counts; a signed count has the sign of its logarithm."""
    plain = [[text or "" for text in part] for part in (texts, fitted)]
    counts = [SparseRows(*count_ngrams(part), BUCKETS).csr for part in plain]
    tfidf = TfidfTransformer(sublinear_tf=True).fit(abs(counts[1]))
    return tfidf.transform(abs(counts[0])).toarray() * np.sign(counts[0].toarray())


@pytest.mark.parametrize("projection", ["svd", "sparse"])
def test_the_exact_kernel_is_the_cosine_by_scikit_learn(table: pa.Table, projection: str) -> None:
    fm = kafeat.fit(config(projection=projection), table.select(["review"]))
    new = [*sentences(30, seed=5), *[text for text in HOSTILE if "\ud800" not in text]]
    u = oracle(new, table["review"].to_pylist())
    K = fm.exact_kernel(pa.table({"review": new}))
    np.testing.assert_allclose(K, u @ u.T, rtol=0, atol=1e-13)  # sums of 700 products of at most 1


def test_svd_is_as_near_as_any_map_of_that_width(table: pa.Table) -> None:
    texts, rows = table.select(["review"])[:100], 100
    u = oracle(texts["review"].to_pylist(), texts["review"].to_pylist())
    values = np.linalg.svd(u, compute_uv=False)
    for width in (8, 32):
        Z = kafeat.fit(config(n=width), texts).transform(texts)
        # Eckart and Young: no map of that width has a smaller error than the singular values that are left
        least = np.sqrt((values[width:] ** 4).sum())
        got = np.linalg.norm(u @ u.T - Z @ Z.T)
        assert least * (1 - 1e-9) <= got <= 1.02 * least
    everything = kafeat.fit(config(n=rows), texts).transform(texts)
    # the directions are stored in float32
    np.testing.assert_allclose(everything @ everything.T, u @ u.T, rtol=0, atol=2e-5)


def by_label(texts: list[str | None], label: np.ndarray, n: int = 6, **keys: object) -> kafeat.FeatureMap:
    return kafeat.fit(config(("t",), n, projection="label", **keys), pa.table({"t": texts}), label=label)


def test_the_models_of_a_label_solve_the_equations_of_ridge_without_their_fold() -> None:
    texts = sentences(400, seed=2)
    u = oracle(texts, texts)
    used = u.any(axis=0)
    u = u[:, used]
    y = u @ np.random.default_rng(3).normal(size=used.sum())
    state = by_label(texts, y, 2).chain.steps[0].state
    counts = SparseRows(*count_ngrams([text or "" for text in texts]), BUCKETS)
    folds = folds_of(sparse_hashes([counts], int(state["seed"])), 10)
    np.testing.assert_array_equal(np.bincount(folds, minlength=10), state["fold_rows"])
    scaled = (y - y.mean()) / y.std()
    predicted = np.zeros(len(y))
    for fold in range(10):
        own, others = folds == fold, folds != fold
        # rows of unit length, so that a penalty of one row is 1 for each that is not empty
        penalty = (np.linalg.norm(u, axis=1) > 0).mean()
        target = scaled[others] - scaled[others].mean()
        w = np.linalg.solve(u[others] @ u[others].T + penalty * np.eye(others.sum()), target) @ u[others]
        found = state["models"][0, fold, used, 1].astype(np.float64)
        size = found @ w / (w @ w)
        rest = u[others].T @ (u[others] @ found / size - target) + penalty * found / size
        # conjugate gradients stop at a residual of 1e-3, and float32 has 7 digits
        assert np.linalg.norm(rest) <= 1.1e-3 * np.linalg.norm(u[others].T @ target)
        predicted[own] = u[own] @ found
    assert abs(predicted.std() - 0.13) < 1e-4


def test_a_label_of_noise_says_nothing_on_the_rows_of_the_fit_either() -> None:
    texts = sentences(3000, seed=4)
    noise = np.random.default_rng(5).normal(size=3000)
    Z = by_label(texts, noise, 2).transform(pa.table({"t": texts}))
    # correlations of independent numbers have a standard error of 1/√n
    assert (np.abs([np.corrcoef(z, noise)[0, 1] for z in Z.T]) < 4 / np.sqrt(3000)).all()
    truth = [len((text or "").split()) + 0.1 * one for text, one in zip(texts, noise, strict=True)]
    Z = by_label(texts, np.array(truth), 2).transform(pa.table({"t": texts}))
    # unit rows hide the number of words
    raw, unit = (np.corrcoef(z, truth)[0, 1] ** 2 for z in Z.T)
    assert 1.0 - raw < 0.5 * (1.0 - unit)


def test_the_label_is_needed_and_its_kernel_is_that_of_the_features(table: pa.Table) -> None:
    with pytest.raises(UsageError, match="projection: label"):
        kafeat.fit(config(projection="label"), table)
    texts = table["review"].to_pylist()
    fm = by_label(texts, np.random.default_rng(7).normal(size=ROWS))
    rows = pa.table({"t": texts[:20]})
    Z = fm.transform(rows)
    np.testing.assert_allclose(fm.exact_kernel(rows), Z @ Z.T, rtol=0, atol=1e-12)


def test_a_text_that_most_rows_have_among_many_others_is_told() -> None:
    texts = ["good"] * 140 + [f"bad {i}" for i in range(60)]
    with pytest.warns(kafeat.errors.KafeatWarning, match="text: expected about 20 rows in each of 10 folds"):
        by_label(texts, np.arange(200.0))


def test_few_different_texts_that_repeat_lose_nothing() -> None:
    """And of a label of noise, k texts explain k/n on n rows."""
    rng = np.random.default_rng(0)
    words, codes = ["red wine", "white wine", "dark beer", "pale beer", "cider"], rng.integers(0, 5, 400)
    for effect in (1.0, 0.0):
        y = effect * rng.normal(size=5)[codes] + 0.3 * rng.normal(size=400)
        fm = by_label([words[code] for code in codes], y, 2)
        Z = np.column_stack([fm.transform(pa.table({"t": words})), np.ones(5)])[codes]
        explained = 1.0 - np.mean((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2) / y.var()
        means = np.bincount(codes, y) / np.bincount(codes)
        most = 1.0 - np.mean((y - means[codes]) ** 2) / y.var()
        assert explained > 0.9 * most if effect else explained < 2 * 5 / 400
        assert fm.transform(pa.table({"t": ["a new one", None]})).shape == (2, 2)


def test_random_signs_are_right_on_average(table: pa.Table) -> None:
    texts = table.select(["review"])[:40]
    u = oracle(texts["review"].to_pylist(), texts["review"].to_pylist())
    K, seeds, width = u @ u.T, 5, 768
    recipe = config(n=width, projection="sparse")
    maps = [kafeat.fit({**recipe, "seed": seed}, texts) for seed in range(seeds)]
    got = np.stack([(lambda Z: Z @ Z.T)(fm.transform(texts)) for fm in maps])
    # the variance of an entry is at most (1 + K²)/D: five standard errors of a mean of 5
    bound = 5 * np.sqrt((1 + K**2) / width / seeds)
    assert (np.abs(got.mean(axis=0) - K) <= bound).all()
    assert got.var(axis=0).mean() <= 1.2 * ((1 + K**2) / width).mean()
    assert set(np.abs(maps[0].chain.steps[0].state["signs"]).ravel()) == {1}


def test_missing_and_empty_texts_are_zeros_and_other_columns_stay(table: pa.Table) -> None:
    fm = kafeat.fit(config(), table)
    Z = fm.transform(table)
    assert Z.shape == (ROWS, 34)
    np.testing.assert_array_equal(Z[:, :2], np.column_stack([table["a"], table["b"]]))
    empty = np.array([not text for text in table["review"].to_pylist()])
    np.testing.assert_array_equal(Z[empty, 2:], 0.0)
    assert (np.linalg.norm(Z[~empty, 2:], axis=1) > 0.0).all()


def test_every_format_gives_the_same_bytes(table: pa.Table, tmp_path: Path) -> None:
    hostile = [text for text in HOSTILE if not {"\ud800", "\x00"} & set(text)]
    hostile += words("7 007 1.50 true 2024-02-29 NA")
    texts = [*sentences(100), *hostile]
    plain = pa.table({"a": np.arange(float(len(texts))), "review": pa.array(texts, pa.string())})
    fm = kafeat.fit(config(), plain)
    want = fm.transform(plain)
    pa_csv.write_csv(plain, tmp_path / "t.csv")
    lines = [json.dumps(row) for row in plain.to_pylist()]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    large = plain.set_column(1, "review", plain["review"].cast(pa.large_string()))
    coded = plain.set_column(1, "review", plain["review"].combine_chunks().dictionary_encode())
    for i, one in enumerate((plain, large, coded)):
        pq.write_table(one, tmp_path / f"t{i}.parquet", row_group_size=37)
        feather.write_feather(one, tmp_path / f"t{i}.arrow")
        assert fm.transform(one).tobytes() == want.tobytes()
    assert fm.transform(plain.to_pandas()).tobytes() == want.tobytes()
    frame = pd.DataFrame({"review": texts, "a": np.arange(len(texts))})
    assert fm.transform(frame).tobytes() == want.tobytes()
    for path in sorted(tmp_path.glob("t*.*")):
        transform_file(fm, str(path), str(tmp_path / f"{path.name}.npy"))
        assert np.load(tmp_path / f"{path.name}.npy").tobytes() == want.tobytes(), path.name
        assert kafeat.fit(config(), path).transform(plain).tobytes() == want.tobytes(), path.name


def test_numbers_are_spelled_as_text_files_spell_them() -> None:
    fm = kafeat.fit(config(("t",), 8), pa.table({"t": [*sentences(50), "100000000000000000000"]}))
    want = fm.transform(pa.table({"t": ["7", "-3", "2.5", "100000000000000000000", ""]}))
    for kind in (pa.float64(), pa.float32()):
        numbers = pa.table({"t": pa.array([7.0, -3.0, 2.5, 1e20, None], kind)})
        assert fm.transform(numbers).tobytes() == want.tobytes()
    assert fm.transform(pa.table({"t": ["7.0", "-3.00"]})).tobytes() == want[:2].tobytes()
    assert fm.transform(np.array([[7.0], [-3.0], [2.5], [1e20]])).tobytes() == want[:4].tobytes()


@pytest.mark.parametrize("projection", ["svd", "sparse", "label"])
def test_bytes_do_not_depend_on_chunks_tiles_and_jobs(table, projection, tmp_path):
    recipe = {**config(projection=projection), "dtype": "float32", "fit_rows": 300}
    label = np.random.default_rng(9).normal(size=ROWS)
    fm = kafeat.fit({**recipe, "chunk_rows": 8192}, table, label=label)
    want = fm.transform(table)
    for rows, some in ((1, 10), (13, 40), (LEAST_ROWS, ROWS), (300, ROWS)):
        other = replace(fm, chunk_rows=rows)
        for jobs in (1, 3):
            assert other.transform(table.slice(0, some), jobs).tobytes() == want[:some].tobytes()
    low = kafeat.fit({**recipe, "chunk_rows": 13}, table, label=label)
    assert low.transform(table).tobytes() == want.tobytes()
    some = np.random.default_rng(0).permutation(ROWS)[:99]
    assert fm.transform(table.take(some)).tobytes() == want[some].tobytes()
    fm.save(tmp_path / "map.joblib")
    assert kafeat.load(tmp_path / "map.joblib").transform(table).tobytes() == want.tobytes()


def test_kernels_compose(table: pa.Table) -> None:
    table, rows = table[:100], 100
    texts = table.select(["review"])
    rbf = {"kind": "fourier", "gamma": 1.5, "n_components": 512, "frequencies": "iid"}
    u = oracle(table["review"].to_pylist(), table["review"].to_pylist())
    distances = (u**2).sum(axis=1)[:, None] + (u**2).sum(axis=1) - 2 * u @ u.T
    chained = kafeat.fit(config(n=rows, more=[rbf]), texts)
    np.testing.assert_allclose(chained.exact_kernel(texts), np.exp(-1.5 * distances), rtol=0, atol=1e-12)
    report = kafeat.evaluate(chained, texts, rows=rows, exact_rows=rows)
    assert report["mean_abs_error"] < 0.05  # 1/√D


def test_several_columns_of_text(table: pa.Table) -> None:
    two = table.append_column("title", pa.array(sentences(ROWS, seed=3)))
    fm = kafeat.fit(config(("title", "review"), 8), two)
    one = kafeat.fit(config(("title",), 8, projection="svd"), two.select(["title"]))
    Z, K = fm.transform(two), fm.exact_kernel(two[:30])
    assert Z.shape == (ROWS, 2 + 16)
    # the streams of random numbers differ, and the best directions do not
    of_title, alone = Z[:, 2:10], one.transform(two)
    np.testing.assert_allclose(of_title @ of_title.T, alone @ alone.T, rtol=0, atol=0.05)
    lists = [two[name].to_pylist() for name in ("title", "review")]
    title, review = (oracle(values[:30], values) for values in lists)
    ab = np.column_stack([two["a"], two["b"]])[:30]
    np.testing.assert_allclose(K, title @ title.T + review @ review.T + ab @ ab.T, rtol=0, atol=1e-12)


def test_what_is_refused(table: pa.Table) -> None:
    text, one_hot = config()["steps"][0], {"kind": "one_hot", "columns": ["review"]}
    two = table.append_column("title", table["review"])
    stamps = table.set_column(1, "review", pa.array(np.arange(ROWS), pa.timestamp("s")))
    title = config(("title",))["steps"]
    for steps, data, told in (
        (["standardize", text], table, "standardize: expected plain numbers, got columns of text"),
        ([*title, text], two, "text: expected to name every column of text that it sees, got others as well"),
        ([text, one_hot], table, "column 'review': expected one step to read it, got one_hot and text"),
        (config(("reviews",))["steps"], table, r"expected the column 'reviews' \(did you mean 'review'\?\)"),
        ([text], stamps, "column 'review': expected text, numbers, dates or categories, got timestamp"),
    ):
        with pytest.raises(DataError, match=told):
            kafeat.fit({"steps": steps}, data)
    with pytest.raises(ConfigError, match="projection"):
        kafeat.fit(config(projection="dense"), table)
    fm = kafeat.fit(config(), table)
    with pytest.raises(DataError, match="feature columns"):
        fm.transform(np.zeros((3, 2)))


@pytest.mark.parametrize(("name", "value", "problem"), [
    ("columns", np.array([-1]), "state.columns"),
    ("columns", np.array([3]), "state.columns"),
    ("outputs", np.full((1, BUCKETS, 4), 8), "state.outputs"),
])  # fmt: skip
def test_states_that_no_fit_gives_are_refused(name: str, value: np.ndarray, problem: str) -> None:
    step = Text(columns=("t",), n_components=8, projection="sparse")
    data = pa.table({"a": np.arange(9.0), "b": np.arange(9.0), "t": sentences(9)})
    fm = kafeat.fit({"steps": [step.recipe()]}, data)
    state = dict(fm.chain.steps[0].state)
    FittedStep.checked(step, state, BUCKETS + 2)
    with pytest.raises(ValueError, match=problem):
        FittedStep.checked(step, {**state, name: value}, BUCKETS + 2)
