"""Scores of `text` and ridge beside TfidfVectorizer and ridge of scikit-learn, on texts that are made or documentation.

    python -m benchmarks.texts

Made: words with effects, which get rarer, typing errors and missing texts, beside a column of numbers; the score is R².
Real: paragraphs of the documentation of installed packages, of which the package is to be told; the score is accuracy.
Both are means over five splits, with the standard error of the difference from `projection: label`.
"""

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge, RidgeClassifier

import kafeat

SPLITS, PENALTIES = range(5), np.geomspace(0.01, 10, 7)
PACKAGES = ("numpy", "pandas", "sklearn", "pyarrow", "scipy.stats", "scipy.signal")
VECTORIZERS = {
    "TfidfVectorizer, words": TfidfVectorizer(sublinear_tf=True),
    "TfidfVectorizer, char_wb": TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True),
}


def made(words: int, rows: int = 20_000) -> pa.Table:
    """Texts of 1 to 7 words, a tenth with a wrong letter; y is the sum of their effects, of a number, and noise."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    known = ["".join(rng.choice(letters, rng.integers(4, 10))) for _ in range(words)]
    share = 1.0 / np.arange(1, words + 1) ** 0.8
    picked = [rng.choice(words, rng.integers(1, 8), p=share / share.sum()) for _ in range(rows)]
    effects, x = rng.normal(size=words), rng.normal(size=rows)
    y = np.array([effects[one].sum() for one in picked]) + x + 0.5 * rng.normal(size=rows)

    def typed(word: str) -> str:
        at = rng.integers(len(word))
        return word[:at] + rng.choice(letters) + word[at + 1 :] if rng.random() < 0.1 else word

    texts = [" ".join(typed(known[i]) for i in one) for one in picked]
    return pa.table({"x": x, "text": pa.array(texts, mask=rng.random(rows) < 0.05), "y": y})


def documented() -> pa.Table:
    """Paragraphs of docstrings, and the package that each is of."""
    found = dict[str, str]()
    for package in PACKAGES:
        for text in _docstrings(package):
            for part in text.split("\n\n"):
                paragraph = " ".join(part.split())
                if 40 < len(paragraph) < 300 and not paragraph.startswith(">>>"):
                    found.setdefault(paragraph, package)
    table = pa.table({"x": np.zeros(len(found)), "text": list(found), "y": list(found.values())})
    return table.take(np.random.default_rng(0).permutation(len(table))[:9_000])


def _docstrings(package: str) -> Iterator[str]:
    module = importlib.import_module(package)
    names = [one.name for one in pkgutil.iter_modules(module.__path__) if one.name[0] != "_"]
    for name in sorted(set(names) - {"conftest", "tests"}):
        try:
            inner = vars(importlib.import_module(f"{package}.{name}"))
        except ImportError:
            continue
        objects = [*inner.values()]
        objects += [member for one in objects if inspect.isclass(one) for member in vars(one).values()]
        yield from filter(None, (inspect.getdoc(one) for one in objects if callable(one)))


def scores(table: pa.Table, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    y = table["y"].to_numpy(zero_copy_only=False)
    ridge = Ridge if y.dtype.kind == "f" else RidgeClassifier
    found = dict[str, float]()
    for projection in ("label", "svd", "sparse"):
        steps = [{"kind": "text", "columns": ["text"], "projection": projection}, {"kind": "ridge"}]
        fm = kafeat.fit({"steps": steps}, table.take(train), label="y", intervals=False)
        predicted = fm.predict(table.take(test)).ravel()
        missed = (
            predicted != y[test] if fm.classes is not None else (predicted - y[test]) ** 2 / np.var(y[test])
        )
        found[f"text, {projection}"] = 1.0 - float(np.mean(missed))
    x, texts = table["x"].to_numpy()[:, None], [text or "" for text in table["text"].to_pylist()]
    inputs = {"without text": csr_array(x)}
    for name, vectorizer in VECTORIZERS.items():
        vectorizer.fit([texts[i] for i in train])
        inputs[name] = csr_array(hstack([x, vectorizer.transform(texts)]))
    for name, X in inputs.items():
        # the best penalty on the test rows themselves: the peer gets no worse than it could be
        found[name] = max(ridge(alpha=a).fit(X[train], y[train]).score(X[test], y[test]) for a in PENALTIES)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    for name, table in (
        ("300 words", made(300)),
        ("2,000 words", made(2_000)),
        ("documentation", documented()),
    ):
        each = []
        for seed in SPLITS:
            order = np.random.default_rng(seed).permutation(len(table))
            cut = 2 * len(order) // 3
            each.append(scores(table, order[:cut], order[cut:]))
        print(f"{name}, {len(table):,} rows")
        for kind in each[0]:
            values = np.array([one[kind] for one in each])
            apart = values - [one["text, label"] for one in each]
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            print(f"  {kind:26} {values.mean():.3f}  {apart.mean():+.3f} ± {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
