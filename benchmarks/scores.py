"""Test errors and processor time of `kafeat tune`, scikit-learn's maps, exact kernel machines and gradient boosting.

    python benchmarks/scores.py DATA_FOLDER OUT.jsonl [--tables letter,usps] [--sides "tune; CatBoost"] [--seeds 5]
        [--rows 6000] [--columns 512] [--seconds 120 | --trials N] [--jobs 1] [--picture FILE.svg]

DATA_FOLDER holds NAME.parquet and tabular/NAME.parquet, with a target (`label` or `medianHouseValue`) and `split`.
Every side gets the same rows: text is one-hot, missing numbers are medians. Whatever a side chooses, it chooses on the
training rows, and the test rows are used once. The error is the error rate for classes and RMSE/σ for numbers; sides
with probabilities have a log loss, too. `tune` has its defaults and two minutes. A tuned booster searches at random for
as much processor time as `tune` took on that table and seed, so run `tune` first.

OUT.jsonl gets one record for each table, seed and side, and a later run does only what is missing there, so that a long
run can be done in slices. Then the tables of all records in OUT.jsonl are printed.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from catboost import CatBoostClassifier, CatBoostRegressor
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

import kafeat

TARGETS = ("label", "medianHouseValue")
MULTIPLES = (0.1, 0.3, 1.0, 3.0)
PENALTIES = 10.0 ** np.arange(-9.0, 1.5, 0.5)
# Numbers of this table are grades in steps of one.
NUMBERS = ("wine",)
MOST_TEST_ROWS = 10_000
MOST_CLASSES = 100
FEW_ROWS = 2000  # below these a choice is made in five folds, above them on a fifth of the training rows
MOST_TO_CHOOSE = 2000  # rows on which an exact machine chooses its kernel
LEAST = 1e-3  # of a thousand test rows, a smaller share of errors is none


def prepared(table):
    """Rows (n, d) without text and missing values, targets (n,), and whether each row is for the test."""
    target = next(name for name in TARGETS if name in table.column_names)
    columns = []
    for column in table.drop_columns([target, "split"]).columns:
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = column.to_numpy().astype(np.float64)
            columns.append(np.where(np.isnan(values), np.nanmedian(values), values)[:, None])
        else:
            codes = np.unique(column.cast(pa.string()).to_numpy().astype(str), return_inverse=True)[1]
            columns.append(np.eye(codes.max() + 1)[codes])
    return np.hstack(columns), table[target].to_numpy(), table["split"].to_numpy().astype(str) == "test"


class Problem:
    """The rows of one table and seed: to train on, to choose on, and to test on; standardized by the first."""

    def __init__(self, name, table, seed, rows):
        X, y, test = prepared(table)
        rng = np.random.default_rng(seed)
        train = rng.permutation(np.flatnonzero(~test))[:rows]
        self.seed = seed
        self.numbers = name in NUMBERS or (y.dtype.kind != "O" and len(np.unique(y)) > MOST_CLASSES)
        if self.numbers:
            y = (y - y[train].mean()) / y[train].std()
            self.Y = y[:, None]
        else:
            y = np.unique(y, return_inverse=True)[1]
            self.Y = np.eye(y.max() + 1)[y]
        self.y, self.raw = y, X
        self.test = rng.permutation(np.flatnonzero(test))[:MOST_TEST_ROWS]
        self.train, fifths = train, np.array_split(train, 5)
        rest = [np.concatenate(fifths[:i] + fifths[i + 1 :]) for i in range(5)]
        self.folds = list(zip(rest, fifths, strict=True))[: 5 if len(train) < FEW_ROWS else 1]
        scale = X[train].std(axis=0)
        self.X = (X - X[train].mean(axis=0)) / np.where(scale > 1e-12 * np.abs(X).max(axis=0), scale, np.inf)

    @property
    def labels(self):
        """Labels as a fit of kafeat wants them: text for classes, so that no number is taken for a quantity."""
        return self.y if self.numbers else np.char.add("class", np.char.zfill(self.y.astype(str), 3))

    def error(self, predicted, rows):
        """RMSE/σ of predicted numbers (n, 1), or the share of wrong classes by their scores (n, classes)."""
        if self.numbers:
            return float(np.sqrt(((predicted[:, 0] - self.y[rows]) ** 2).mean()))
        return float((predicted.argmax(axis=1) != self.y[rows]).mean())

    def log_loss(self, probabilities, rows):
        """Mean of -log of the probability (n, classes) of the right class."""
        return float(-np.log(np.clip(probabilities[np.arange(len(rows)), self.y[rows]], 1e-15, 1.0)).mean())

    def noise(self, predicted, rows):
        """Return the standard error of `error`, from these rows alone."""
        if self.numbers:
            squares = (predicted[:, 0] - self.y[rows]) ** 2
            return float(squares.std() / np.sqrt(len(rows)) / (2.0 * np.sqrt(squares.mean())))
        error = self.error(predicted, rows)
        return float(np.sqrt(error * (1.0 - error) / len(rows)))

    def known(self, rows, held):
        """Held-out rows and targets without classes that `rows` lack, which a booster refuses to stop by."""
        if not self.numbers:
            held = held[np.isin(self.y[held], self.y[rows])]
        return self.raw[held], self.y[held]

    def median_gamma(self):
        pairs = np.random.default_rng(self.seed).choice(self.train, (4000, 2))
        squares = ((self.X[pairs[:, 0]] - self.X[pairs[:, 1]]) ** 2).sum(axis=1)
        return 1.0 / (2.0 * np.median(squares[squares > 0.0]))


def best_of(problem, choices, errors):
    """The choice with the least mean over the folds of `errors(choice, rows, held)`, a list, and the place in it."""
    found = [np.mean([errors(choice, *fold) for fold in problem.folds], axis=0) for choice in choices]
    at = min(range(len(found)), key=lambda i: found[i].min())
    return choices[at], int(found[at].argmin())


def ridge_path(Z, Y):
    """Weights and intercepts of ridge for every penalty."""
    middle, level = Z.mean(axis=0), Y.mean(axis=0)
    A = Z - middle
    values, vectors = np.linalg.eigh(A.T @ A)
    values, turned = np.maximum(values, 0.0), vectors.T @ (A.T @ (Y - level))
    for penalty in PENALTIES:
        w = vectors @ (turned / (values + penalty * values.mean())[:, None])
        yield w, level - middle @ w


def with_ridge(choices):
    """A side: ridge on the best of the maps `choices(problem, width)`, functions of rows to fit on."""

    def errors(problem, choice, rows, held):
        features = choice(rows)
        Z, path = features(held), ridge_path(features(rows), problem.Y[rows])
        return [problem.error(Z @ w + b, held) for w, b in path]

    def side(problem, args):
        made = choices(problem, args.columns)
        choice, at = best_of(problem, made, lambda *fold: errors(problem, *fold))
        features = choice(problem.train)
        w, b = list(ridge_path(features(problem.train), problem.Y[problem.train]))[at]
        return features(problem.test) @ w + b

    return side


def raw(problem, width):
    del width
    return [lambda _rows: lambda wanted: problem.X[wanted]]


def of_sklearn(cls):
    def choices(problem, width):
        def choice(multiple, rows):
            gamma = multiple * problem.median_gamma()
            made = cls(gamma=gamma, n_components=min(width, len(rows)), random_state=problem.seed)
            made.fit(problem.X[rows])
            return lambda wanted: made.transform(problem.X[wanted])

        return [lambda rows, multiple=multiple: choice(multiple, rows) for multiple in MULTIPLES]

    return choices


def of_kafeat(*steps):
    """The last step with several γ, as its page shows it."""

    def choices(problem, width):
        def choice(multiple, rows):
            *before, last = steps
            columns = min(width, len(rows)) if last["kind"] == "nystroem" else width
            last = {**last, "gamma": f"{multiple}*median", "n_components": columns}
            config = {"dtype": "float64", "seed": problem.seed, "fit_rows": "all", "steps": [*before, last]}
            made = kafeat.fit(config, problem.raw[rows], problem.labels[rows], intervals=False)
            return lambda wanted: made.transform(problem.raw[wanted])

        return [lambda rows, multiple=multiple: choice(multiple, rows) for multiple in MULTIPLES]

    return choices


def tune(problem, args):
    """The model that `kafeat tune` and `kafeat fit` make, but for the intervals."""
    rows = problem.train
    limit = {"time": float(args.seconds)} if args.trials is None else {"trials": args.trials}
    X, y = problem.raw[rows], problem.labels[rows]
    limit["predictor"] = "ridge" if problem.numbers else "logistic"
    chosen = kafeat.tune(X, y, args.columns, jobs=args.jobs, boosting=False, **limit)
    print(f"  {chosen.trials} trials: {chosen.table[0]['map']}", flush=True)
    model = kafeat.fit(chosen.config, X, y, jobs=args.jobs, intervals=not problem.numbers)
    if problem.numbers:
        return np.asarray(model.predict(problem.raw[problem.test])).reshape(-1, 1)
    return model.predict_proba(problem.raw[problem.test])


def exact(problem, args):
    """Kernel ridge on all training rows; the kernel is chosen on some of them, the penalty on all."""
    del args
    penalties = 10.0 ** np.arange(-6.0, 1.0)

    def predicted(choice, rows, wanted, some):
        function, multiple = choice
        gamma = multiple * problem.median_gamma()
        if function is laplacian_kernel:  # whose distances grow with the columns, not with their root
            gamma = multiple * np.sqrt(problem.median_gamma() / problem.X.shape[1])
        K, level = function(problem.X[rows], gamma=gamma), problem.Y[rows].mean(axis=0)
        between = function(problem.X[wanted], problem.X[rows], gamma=gamma)
        for penalty in some:
            yield between @ np.linalg.solve(K + penalty * np.eye(len(K)), problem.Y[rows] - level) + level

    def errors(choice, rows, held):
        return [problem.error(made, held) for made in predicted(choice, rows, held, penalties)]

    choices = [(function, multiple) for function in (rbf_kernel, laplacian_kernel) for multiple in MULTIPLES]
    choice, _ = best_of(problem, choices, lambda one, rows, held: errors(one, rows[:MOST_TO_CHOOSE], held))
    choice, at = best_of(problem, [choice], errors)
    return next(predicted(choice, problem.train, problem.test, penalties[at : at + 1]))


def svm(problem, args):
    """A support vector machine on all training rows; its kernel is chosen on some of them."""
    del args

    def made(choice, rows):
        multiple, cost = choice
        options = {"gamma": multiple * problem.median_gamma(), "C": cost, "cache_size": 1000}
        model = SVR(**options, epsilon=0.05) if problem.numbers else SVC(**options)
        return model.fit(problem.X[rows], problem.y[rows])

    def predicted(model, rows):
        found = model.predict(problem.X[rows])
        return found[:, None] if problem.numbers else np.eye(problem.Y.shape[1])[found]

    def errors(choice, rows, held):
        return [problem.error(predicted(made(choice, rows[:MOST_TO_CHOOSE]), held), held)]

    choices = [(multiple, cost) for multiple in MULTIPLES for cost in (1.0, 10.0, 100.0)]
    choice, _ = best_of(problem, choices, errors)
    return predicted(made(choice, problem.train), problem.test)


def histogram_boosting(problem, rows, held, options):
    del held, options
    cls = HistGradientBoostingRegressor if problem.numbers else HistGradientBoostingClassifier
    return cls(random_state=problem.seed).fit(problem.raw[rows], problem.y[rows]), None


def light(problem, rows, held, options):
    cls = lightgbm.LGBMRegressor if problem.numbers else lightgbm.LGBMClassifier
    model = cls(random_state=problem.seed, n_jobs=1, verbose=-1, **options)
    if held is None or not options:
        return model.fit(problem.raw[rows], problem.y[rows]), None
    model.fit(
        problem.raw[rows],
        problem.y[rows],
        eval_set=[problem.known(rows, held)],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    return model, {"n_estimators": model.best_iteration_}


def cat(problem, rows, held, options):
    cls = CatBoostRegressor if problem.numbers else CatBoostClassifier
    fixed = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    model = cls(random_seed=problem.seed, **fixed, **options)
    if held is None or not options:
        return model.fit(problem.raw[rows], problem.y[rows]), None
    model.fit(
        problem.raw[rows],
        problem.y[rows],
        eval_set=problem.known(rows, held),
        early_stopping_rounds=50,
    )
    return model, {"iterations": model.tree_count_}


def light_options(rng):
    return {
        "n_estimators": 3000,
        "learning_rate": float(10.0 ** rng.uniform(-2.0, -0.7)),
        "num_leaves": int(rng.choice([7, 15, 31, 63, 127])),
        "min_child_samples": int(rng.choice([3, 5, 10, 20, 50])),
        "colsample_bytree": float(rng.uniform(0.4, 1.0)),
        "subsample": float(rng.uniform(0.5, 1.0)),
        "subsample_freq": 1,
        "reg_lambda": float(10.0 ** rng.uniform(-3.0, 1.5)),
    }


def cat_options(rng):
    return {
        "iterations": 3000,
        "learning_rate": float(10.0 ** rng.uniform(-2.0, -0.7)),
        "depth": int(rng.integers(4, 11)),
        "l2_leaf_reg": float(10.0 ** rng.uniform(-0.5, 1.5)),
        "random_strength": float(rng.uniform(0.0, 2.0)),
        "bagging_temperature": float(rng.uniform(0.0, 1.0)),
    }


def boosted(fit, sampled=None):
    """A side: a booster with its defaults, or with the best of random options for as long as `tune` searched."""

    def predicted(problem, model, rows):
        if problem.numbers:
            return np.asarray(model.predict(problem.raw[rows])).reshape(-1, 1)
        chances = np.zeros((len(rows), problem.Y.shape[1]))
        chances[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(problem.raw[rows])
        return chances

    def validated(problem, options):
        """Mean loss on held-out rows, and the options with the rounds that were best there."""
        losses, rounds = [], {}
        for rows, held in problem.folds:
            model, best = fit(problem, rows, held, options)
            loss = problem.error if problem.numbers else problem.log_loss
            losses.append(loss(predicted(problem, model, held), held))
            for name, number in (best or {}).items():
                rounds.setdefault(name, []).append(number)
        return np.mean(losses), options | {
            name: max(1, round(np.mean(many))) for name, many in rounds.items()
        }

    def side(problem, args):
        best = validated(problem, {})
        rng, started = np.random.default_rng(problem.seed), processor_seconds()
        while sampled is not None and processor_seconds() - started < args.budget:
            best = min(best, validated(problem, sampled(rng)), key=lambda found: found[0])
        problem.validation = float(best[0])
        model, _ = fit(problem, problem.train, None, best[1])
        return predicted(problem, model, problem.test)

    return side


BOOSTERS = {
    "boosting": boosted(histogram_boosting),
    "LightGBM": boosted(light),
    "CatBoost": boosted(cat),
    "LightGBM, tuned": boosted(light, light_options),
    "CatBoost, tuned": boosted(cat, cat_options),
}
STANDARDIZE = {"kind": "standardize"}
SIDES = {
    "tune": tune,
    "ridge": with_ridge(raw),
    "RBFSampler": with_ridge(of_sklearn(RBFSampler)),
    "Nystroem": with_ridge(of_sklearn(Nystroem)),
    "nystroem": with_ridge(of_kafeat(STANDARDIZE, {"kind": "nystroem"})),
    "fourier": with_ridge(of_kafeat(STANDARDIZE, {"kind": "fourier"})),
    "exact": exact,
    "SVM": svm,
    **BOOSTERS,
}
# Peers that stand for several sides: the least error by hindsight, or the one that was best on held-out rows.
BEST = {
    "the better of scikit-learn's maps": ("RBFSampler", "Nystroem"),
    "the better exact machine": ("exact", "SVM"),
    "the best of four boosters by hindsight": tuple(BOOSTERS)[1:],
}
CHOSEN = {"the best of four boosters by validation": tuple(BOOSTERS)[1:]}


def processor_seconds():
    """Of this process and those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measured(problem, side, args):
    """One record."""
    problem.validation = None
    began, started = time.perf_counter(), processor_seconds()
    predicted = SIDES[side](problem, args)
    seconds = {"processor": processor_seconds() - started, "wall": time.perf_counter() - began}
    found = {"error": problem.error(predicted, problem.test), "noise": problem.noise(predicted, problem.test)}
    if not problem.numbers and (side == "tune" or side in BOOSTERS):
        found["log_loss"] = problem.log_loss(predicted, problem.test)
    if problem.validation is not None:
        found["validation"] = problem.validation
    found = {name: float(f"{value:.5g}") for name, value in found.items()}
    return found | {name: round(value, 1) for name, value in seconds.items()}


def means(records, peer):
    """The records of a peer by (table, seed), for a peer of several sides those of one of them."""
    by = {}
    for record in records:
        if record["side"] in (*BEST.get(peer, ()), *CHOSEN.get(peer, ()), peer):
            by.setdefault((record["table"], record["seed"]), {})[record["side"]] = record
    if peer in BEST:  # as each table has one best machine, not each seed
        tables = {name for name, _ in by}
        errors = {
            name: {side: np.mean([sides[side]["error"] for (n, _), sides in by.items() if n == name])
                   for side in set.intersection(*(set(s) for (n, _), s in by.items() if n == name))}
            for name in tables
        }  # fmt: skip
        return {(n, s): sides[min(errors[n], key=errors[n].get)] for (n, s), sides in by.items() if errors[n]}
    return {key: min(sides.values(), key=lambda r: r.get("validation") or 0.0) for key, sides in by.items()}


def compared(ours, theirs):
    """Compare mean errors, log losses and processor time of each table over the seeds that both have."""
    rows = []
    for name in sorted({name for name, _ in ours.keys() & theirs.keys()}):
        keys = [key for key in ours.keys() & theirs.keys() if key[0] == name]
        a, b = ([records[key] for key in keys] for records in (ours, theirs))
        error, other = (max(np.mean([r["error"] for r in records]), LEAST) for records in (a, b))
        noise = 2.0 * np.sqrt(
            sum(np.mean([r["noise"] for r in records]) ** 2 for records in (a, b)) / len(keys)
        )
        losses = [np.mean([r["log_loss"] for r in records]) for records in (a, b) if "log_loss" in records[0]]
        rows.append({
            "table": name,
            "ratio": error / other,
            "log loss": losses[0] / losses[1] if len(losses) == 2 else np.nan,
            "beyond": 0 if abs(error - other) <= noise else np.sign(other - error),
            "behind": error > 1.05 * other and error - other > noise,
            "processor": np.mean([r["processor"] for r in a]) / np.mean([r["processor"] for r in b]),
        })  # fmt: skip
    return rows


def page(records):
    """The tables of all records, in Markdown."""
    ours = means(records, "tune")
    lines = ["| `tune`'s share of | tables | error, geometric mean | median | log loss | better, worse beyond noise | "
             "worse by > 5 % beyond noise | processor time, median |", "|---" * 8 + "|"]  # fmt: skip
    for peer in [side for side in SIDES if side != "tune"] + [*BEST, *CHOSEN]:
        rows = compared(ours, means(records, peer))
        if rows:
            ratios = np.array([row["ratio"] for row in rows])
            losses = np.array([row["log loss"] for row in rows if not np.isnan(row["log loss"])])
            loss = f"{np.exp(np.log(losses).mean()):.2f}" if len(losses) else ""
            beyond = [sum(row["beyond"] == sign for row in rows) for sign in (1, -1)]
            behind = ", ".join(row["table"] for row in rows if row["behind"]) or "none"
            lines.append(
                f"| {peer} | {len(rows)} | {np.exp(np.log(ratios).mean()):.2f} | {np.median(ratios):.2f} | {loss} | "
                f"{beyond[0]}, {beyond[1]} | {behind} | {np.median([row['processor'] for row in rows]):.1f} |"
            )
    sides = [side for side in SIDES if any(record["side"] == side for record in records)]
    for title, key, digits in (
        ("error", "error", 4),
        ("log loss", "log_loss", 4),
        ("processor s", "processor", 1),
    ):
        lines += ["", f"| {title} | {' | '.join(sides)} |", "|---" * (len(sides) + 1) + "|"]
        for name in sorted({record["table"] for record in records}):
            cells = []
            for side in sides:
                own = [r[key] for r in records if (r["table"], r["side"]) == (name, side) and key in r]
                spread = f" ± {np.std(own):.{digits}f}" if len(own) > 1 and key != "processor" else ""
                cells.append(f"{np.mean(own):.{digits}f}{spread}" if own else "")
            if any(cells):
                lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(records, path):
    """Draw the errors of others as multiples of that of `tune`, for each table."""
    ours = means(records, "tune")
    peers = ["the better of scikit-learn's maps", "boosting", "LightGBM", "CatBoost"]
    rows = {
        peer: {row["table"]: 1.0 / row["ratio"] for row in compared(ours, means(records, peer))}
        for peer in peers
    }
    names = sorted(rows["CatBoost"], key=rows["CatBoost"].get)
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.subplots()
    for peer, marker, hue in zip(peers, "osD^", ("#999999", "#d55e00", "#009e73", "#0072b2"), strict=True):
        axes.plot([rows[peer].get(name) for name in names], names, marker, color=hue, ms=5, label=peer)
    axes.axvline(1.0, color="black", lw=1)
    axes.set(
        xscale="log", xlabel="test error as a multiple of that of kafeat tune (right of 1: kafeat errs less)"
    )
    axes.grid(axis="y", color="#dddddd", lw=0.5)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tables")
    parser.add_argument("--sides", default="; ".join(SIDES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument(
        "--trials", type=int, help="trials of tune, which give the same everywhere, instead of seconds"
    )
    parser.add_argument("--jobs", type=int, help="threads of tune; all cores if left out")
    parser.add_argument("--picture", type=Path, help="an SVG file to draw all records in")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = [*args.folder.glob("*.parquet"), *args.folder.glob("tabular/*.parquet")]
    paths = {path.stem: path for path in sorted(found) if "split" in pq.read_schema(path).names}
    records = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    for seed in range(args.seeds):
        for name in args.tables.split(",") if args.tables else paths:
            problem = None
            for side in (side.strip() for side in args.sides.split(";")):
                by = {r["side"]: r for r in records if (r["table"], r["seed"]) == (name, seed)}
                if side in by:
                    continue
                problem = problem or Problem(name, pq.read_table(paths[name]), seed, args.rows)
                args.budget = by["tune"]["processor"] if "tune" in by else args.seconds
                # Threads that wait for each other spin, which would count as processor time.
                with threadpool_limits(1):
                    record = {"table": name, "seed": seed, "side": side, **measured(problem, side, args)}
                records.append(record)
                print(json.dumps(record), flush=True)
                with args.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    print(page(records))
    if args.picture:
        picture(records, args.picture)


if __name__ == "__main__":
    main()
