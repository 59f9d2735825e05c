"""Scores of tune's choice beside gradient boosting and ridge of scikit-learn, where columns are no numbers.

    python -m benchmarks.categories [seconds] [flights_train.csv flights_test.csv status]

Categories: 20,000 rows, 3,000 values with effects of variance 1 and noise 0.3, beside numbers, with and without a
column of 5,000 values that say nothing. Texts: those of `benchmarks.texts`. Two files of your own may follow, with the
label. The score is R², or log loss for classes, on rows that no one has seen; standard errors are of 200 resamples.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

import kafeat
from benchmarks.texts import PENALTIES, VECTORIZERS, made

RESAMPLES = 200


def categories(rows: int = 20_000, values: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    shop, effects, x = rng.integers(values, size=rows), rng.normal(size=values), rng.normal(size=(rows, 3))
    y = effects[shop] + np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=rows)
    noise = rng.integers(5_000, size=rows)
    columns = {"shop": [f"s{i}" for i in shop], "noise": [f"n{i}" for i in noise]}
    return pd.DataFrame({**columns, **{f"x{j}": x[:, j] for j in range(3)}, "y": y})


def tuned(seconds: float, columns: int | None = None) -> Callable[..., np.ndarray]:
    def predict(train: pd.DataFrame, test: pd.DataFrame, label: str) -> np.ndarray:
        tuning = kafeat.tune(train, label, time=seconds, columns=columns, predictor="ridge")
        print("    " + " -> ".join(step.kind for step in tuning.config.steps) + ":", tuning.table[0]["map"])
        fm = tuning.fit()
        return np.asarray(fm.predict(test) if fm.classes is None else fm.predict_proba(test))

    return predict


def boosted(library: str) -> Callable[..., np.ndarray]:
    def predict(train: pd.DataFrame, test: pd.DataFrame, label: str) -> np.ndarray:
        train, test = numeric_times(train), numeric_times(test)
        names = [name for name in train.columns if name != label]
        texts = [name for name in names if not pd.api.types.is_numeric_dtype(train[name])]
        encoder = TargetEncoder(random_state=0)
        before = make_column_transformer((encoder, texts), remainder="passthrough")
        classes = not pd.api.types.is_numeric_dtype(train[label])
        if library == "LightGBM":
            import lightgbm

            model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(
                verbose=-1, n_estimators=300
            )
        else:
            model = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
                early_stopping=True, random_state=0
            )
        fitted = make_pipeline(before, model).fit(train[names], train[label])
        return fitted.predict_proba(test[names]) if classes else fitted.predict(test[names])

    return predict


def numeric_times(table: pd.DataFrame) -> pd.DataFrame:
    """Replace times by their month, weekday and hour, and missing texts by a text."""
    parts = {}
    for name, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            parts[name] = column
            continue
        times = pd.to_datetime(column, errors="coerce", format="ISO8601")
        if times.notna().mean() > 0.9:
            parts |= {
                f"{name} {part}": getattr(times.dt, part) for part in ("month", "dayofweek", "hour", "minute")
            }
        else:
            parts[name] = column.fillna("none")
    return pd.DataFrame(parts)


def with_tfidf(vectorizer: TfidfVectorizer) -> Callable[..., np.ndarray]:
    def predict(train: pd.DataFrame, test: pd.DataFrame, label: str) -> np.ndarray:
        """Return predictions with the penalty that is best on the test rows: no peer gets worse than it could be."""
        texts = (
            vectorizer.fit_transform(train["text"].fillna("")),
            vectorizer.transform(test["text"].fillna("")),
        )
        X, Z = (
            csr_array(hstack([table[["x"]], part])) for table, part in zip((train, test), texts, strict=True)
        )
        each = [Ridge(alpha=penalty).fit(X, train[label]).predict(Z) for penalty in PENALTIES]
        return min(each, key=lambda predicted: np.mean((predicted - test[label]) ** 2))

    return predict


def score(predicted: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return R² of numbers or log loss of classes, and its standard error."""
    rng, n = np.random.default_rng(0), len(y)
    if y.dtype.kind == "f":
        lost = (predicted.ravel() - y) ** 2
        samples = [(lost[k].mean() / y[k].var()) for k in (rng.integers(n, size=n) for _ in range(RESAMPLES))]
        return 1.0 - lost.mean() / y.var(), float(np.std(samples))
    classes = np.unique(y.astype(str))
    lost = -np.log(np.maximum(predicted[np.arange(n), np.searchsorted(classes, y.astype(str))], 1e-15))
    return lost.mean(), lost.std() / np.sqrt(n)


def main() -> None:
    warnings.simplefilter("ignore")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    boosting = {f"{name}, TargetEncoder": boosted(name) for name in ("HistGradientBoosting", "LightGBM")}
    shops = categories()
    cases = {
        "categories": (shops.drop(columns="noise"), "y", {"tune": tuned(seconds), **boosting}),
        "categories and noise": (shops, "y", {"tune": tuned(seconds), **boosting}),
    }
    for words in (300, 2_000):
        peers = {
            "tune, 512 columns": tuned(seconds, 512),
            **{f"{name}, ridge": with_tfidf(one) for name, one in VECTORIZERS.items()},
        }
        cases[f"texts of {words:,} words"] = made(words).to_pandas(), "y", peers
    tables = {}
    for name, (table, label, models) in cases.items():
        cut = len(table) * 3 // 4
        tables[name] = table[:cut], table[cut:].reset_index(drop=True), label, models
    if len(sys.argv) > 2:
        files = [pd.read_csv(name) for name in sys.argv[2:4]]
        tables["files"] = *files, sys.argv[4], {"tune": tuned(seconds), **boosting}
    for name, (train, test, label, models) in tables.items():
        print(name)
        for model, predict in models.items():
            value, error = score(np.asarray(predict(train, test, label)), test[label].to_numpy())
            print(f"  {model:36} {value:.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
