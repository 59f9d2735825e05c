"""Test scores of a linear model on raw columns, on features of scikit-learn and of kafeat, and of other machines.

    python benchmarks/scores.py DATA_FOLDER [--tables letter,usps] [--widths 128,512,1024] [--seeds 5] [--rows 6000]
        [--sides "raw; Nystroem"] [--trials N] [--out scores.json] [--page docs/accuracy.md]

DATA_FOLDER holds NAME.parquet and tabular/NAME.parquet, with a target (`label` or `medianHouseValue`) and `split`.
Every side gets the same rows: text is one-hot, missing numbers are medians. γ (a multiple of the median rule), the
penalty of ridge and every other choice are made on a fifth of the training rows, or in five folds where there are fewer
than 2,000, and the test rows are used once. The error is the error rate for classes, and RMSE/σ for numbers. Writes
every figure to --out, which a later run goes on with, and prints the table; --page puts it into docs/accuracy.md, whose
figures are in benchmarks/results/scores.json. With the sides `tune` and `boosting`, the ratios of their errors are
printed, too. `tune` takes two minutes, or --trials, which give the same on every machine.
"""

import argparse
import json
import re
import time
import warnings
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import kafeat

TARGETS = ("label", "medianHouseValue")
MULTIPLES = (0.1, 0.3, 1.0, 3.0)
PENALTIES = 10.0 ** np.arange(-9.0, 1.5, 0.5)
# Numbers of this table are grades in steps of one.
NUMBERS = ("wine",)
MOST_TEST_ROWS = 10_000
MOST_CLASSES = 100
FEW_ROWS = 2000


def prepared(table):
    """Rows (n, d) without text and missing values, targets (n, k), and the rows of the test."""
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
    """The rows of one table and seed: to train on, to validate on, and to test on; standardized by the first."""

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
        self.y, self.X, self.raw = y, None, X
        self.test = rng.permutation(np.flatnonzero(test))[:MOST_TEST_ROWS]
        self.train, fifths = train, np.array_split(train, 5)
        rest = [np.concatenate(fifths[:i] + fifths[i + 1 :]) for i in range(5)]
        self.folds = list(zip(rest, fifths, strict=True))[: 5 if len(train) < FEW_ROWS else 1]
        self.fit, self.held = self.folds[0]
        scale = X[train].std(axis=0)
        self.X = (X - X[train].mean(axis=0)) / np.where(scale > 1e-12 * np.abs(X).max(axis=0), scale, np.inf)

    @property
    def labels(self):
        """Labels as a fit of kafeat takes them: whole numbers are classes."""
        return self.y + 0.0 if self.numbers else self.y

    def error(self, predicted, rows):
        if self.numbers:
            return float(np.sqrt(((predicted[:, 0] - self.y[rows]) ** 2).mean()))
        return float((predicted.argmax(axis=1) != self.y[rows]).mean())

    def log_loss(self, probabilities, rows):
        """Mean of -log of the probability (n, k) of the right class."""
        return float(-np.log(np.clip(probabilities[np.arange(len(rows)), self.y[rows]], 1e-15, 1.0)).mean())

    def median_gamma(self):
        pairs = np.random.default_rng(self.seed).choice(self.train, (4000, 2))
        squares = ((self.X[pairs[:, 0]] - self.X[pairs[:, 1]]) ** 2).sum(axis=1)
        return 1.0 / (2.0 * np.median(squares[squares > 0.0]))


def ridge_path(Z, Y):
    """Weights and intercepts of ridge for every penalty."""
    middle, level = Z.mean(axis=0), Y.mean(axis=0)
    A = Z - middle
    values, vectors = np.linalg.eigh(A.T @ A)
    values, turned = np.maximum(values, 0.0), vectors.T @ (A.T @ (Y - level))
    for penalty in PENALTIES:
        w = vectors @ (turned / (values + penalty * values.mean())[:, None])
        yield w, level - middle @ w


def with_ridge(problem, choices):
    """Test the best choice, a function (rows to fit on) -> map of rows to features."""
    choice, penalty = best_of(problem, choices)
    features = choice(problem.train)
    w, b = list(ridge_path(features(problem.train), problem.Y[problem.train]))[penalty]
    return problem.error(features(problem.test) @ w + b, problem.test)


def best_of(problem, choices):
    """Validate every choice, and return the best one with the place of its penalty."""
    best = (np.inf, None, 0)
    for choice in choices:
        errors = np.mean(
            [path_errors(problem, choice(rows), rows, held) for rows, held in problem.folds], axis=0
        )
        best = min(best, (errors.min(), choice, int(errors.argmin())), key=itemgetter(0))
    return best[1:]


def path_errors(problem, features, rows, held):
    """Errors on held-out rows for every penalty."""
    Z = features(held)
    return [problem.error(Z @ w + b, held) for w, b in ridge_path(features(rows), problem.Y[rows])]


def raw(problem, width):
    del width
    return with_ridge(problem, [lambda _rows: lambda wanted: problem.X[wanted]])


def of_sklearn(cls):
    def side(problem, width):
        def choice(multiple):
            def fit(rows):
                gamma = multiple * problem.median_gamma()
                made = cls(gamma=gamma, n_components=min(width, len(rows)), random_state=problem.seed)
                made.fit(problem.X[rows])
                return lambda wanted: made.transform(problem.X[wanted])

            return fit

        return with_ridge(problem, [choice(multiple) for multiple in MULTIPLES])

    return side


def fitted(problem, config, rows):
    """A map of kafeat, fitted on these rows with their labels."""
    plain = {"dtype": "float64", "seed": problem.seed, "fit_rows": "all", **config}
    return kafeat.fit(plain, problem.raw[rows], problem.labels[rows], intervals=False)


def of_kafeat(*steps, multiples=MULTIPLES, trees=False):
    """γ of the last step by validation, and with `trees` the size of two columns for each class beside its map."""

    def side(problem, width):
        def choice(multiple, weight=None):
            *before, last = steps
            if multiple is not None:
                last = {**last, "gamma": f"{multiple}*median"}

            def fit(rows):
                few = 0 if weight is None else max(16, 2 * problem.Y.shape[1])
                own = min(width - few, len(rows)) if last["kind"] == "nystroem" else width - few
                whole = [*before, {**last, "n_components": own}]
                if few:
                    sums = problem.Y.shape[1] if problem.Y.shape[1] > 2 else 1
                    n = min(300, max(100, 600 // sums))
                    grown = {"kind": "trees", "n_components": few, "n_folds": 6, "scale": 0.13, "n_trees": n}
                    grown["learning_rate"] = 15.0 / n
                    whole = [
                        {"kind": "union", "maps": [{"steps": whole}, {"steps": [grown], "weight": weight}]}
                    ]
                fm = fitted(problem, {"steps": whole}, rows)
                return lambda wanted: fm.transform(problem.raw[wanted])

            return fit

        alone = {choice(multiple): multiple for multiple in multiples}
        if not trees:
            return with_ridge(problem, alone)
        multiple = alone[best_of(problem, alone)[0]]
        return with_ridge(problem, [choice(multiple, weight) for weight in (0.1, 1.0, 10.0)])

    return side


def chosen(problem, width):
    """Scaler, metric, kernel and γ by `validate`, or supervised frequencies: the best config on held-out rows."""
    nystroem = {
        "kind": "nystroem",
        "n_components": min(width, len(problem.fit)),
        "kernel": {"validate": ["rbf", "matern", "laplacian"]},
        "nu": {"validate": [0.5, 1.5]},
        "gamma": {"validate": [f"{m}*median" for m in (0.1, 0.3, 1, 3, 10)]},
    }
    metric = {"kind": "metric", "alpha": {"validate": [0.5, 1.0]}, "diagonal": {"validate": [False, True]}}
    supervised = {"kind": "fourier", "n_components": width, "frequencies": "supervised"}

    def choice(steps):
        kept = []

        def fit(rows):
            # What was chosen on the rows to fit on is kept for all training rows.
            config = {"steps": kept or steps, "search": {"method": "coordinate"}}
            fm = fitted(problem, config, rows)
            kept[:] = [step.step.recipe() for step in fm.chain.steps]
            return lambda wanted: fm.transform(problem.raw[wanted])

        return fit

    scalers = ({"kind": "standardize"}, {"kind": "quantile"}, {"kind": "quantile", "output": "uniform"})
    lasts = ([nystroem], [metric, nystroem], [supervised], [{"kind": "metric"}, supervised])
    return with_ridge(problem, [choice([scaler, *last]) for scaler in scalers for last in lasts])


# None searches for two minutes.
TRIALS = None


def tuned(problem, width):
    """The model of the config with ridge that `kafeat tune` chooses on the training rows, by what is compared here."""
    rows, scoring = problem.train, "r2" if problem.numbers else "accuracy"
    limit = {"time": 120.0} if TRIALS is None else {"trials": TRIALS}
    options = {"scoring": scoring, "predictor": "ridge", **limit}
    chosen = kafeat.tune(problem.raw[rows], problem.labels[rows], width, **options)
    model = fitted(problem, {"steps": chosen.config.to_plain()["steps"]}, rows)
    print(f"  {chosen.trials} trials: {chosen.table[0]['map']}", flush=True)
    test = problem.raw[problem.test]
    if problem.numbers:
        return problem.error(np.asarray(model.predict(test)).reshape(-1, 1), problem.test)
    chances = model.predict_proba(test)
    return problem.error(chances, problem.test), problem.log_loss(chances, problem.test)


def exact(problem, width):
    """Kernel ridge on all training rows."""
    del width
    best = (np.inf, 1.0, 0)
    for multiple in MULTIPLES:
        errors = [
            [problem.error(predicted, held) for predicted in kernel_path(problem, multiple, rows, held)]
            for rows, held in problem.folds
        ]
        mean = np.mean(errors, axis=0)
        best = min(best, (mean.min(), multiple, int(mean.argmin())))
    _, multiple, i = best
    return problem.error(list(kernel_path(problem, multiple, problem.train, problem.test))[i], problem.test)


def kernel_path(problem, multiple, rows, wanted):
    gamma, level = multiple * problem.median_gamma(), problem.Y[rows].mean(axis=0)
    K = rbf_kernel(problem.X[rows], gamma=gamma)
    between = rbf_kernel(problem.X[wanted], problem.X[rows], gamma=gamma)
    for penalty in 10.0 ** np.arange(-6.0, 1.0):
        yield between @ np.linalg.solve(K + penalty * np.eye(len(K)), problem.Y[rows] - level) + level


def boosting(**options):
    def side(problem, width):
        del width
        cls = HistGradientBoostingRegressor if problem.numbers else HistGradientBoostingClassifier
        model = cls(random_state=problem.seed, **options)
        # Its threads wait for each other in every loop, for minutes if cores are busy.
        with threadpool_limits(1, user_api="openmp"):
            rows = problem.train
            if options and not problem.numbers:  # early stopping refuses classes of one row
                rows = rows[np.bincount(problem.y[rows])[problem.y[rows]] > 1]
            model.fit(problem.raw[rows], problem.y[rows])
            if problem.numbers:
                return problem.error(model.predict(problem.raw[problem.test])[:, None], problem.test)
            chances = np.zeros((len(problem.test), problem.Y.shape[1]))
            chances[:, model.classes_] = model.predict_proba(problem.raw[problem.test])
        return problem.error(chances, problem.test), problem.log_loss(chances, problem.test)

    return side


def xrfm(problem, width):
    """The kernel machine with a metric of its own (package xrfm). It stops its rounds by the held-out rows, too."""
    del width
    import torch
    from xrfm import xRFM

    def inputs(rows):
        return torch.tensor(problem.X[rows], dtype=torch.float32)

    def labels(rows):
        return torch.tensor(problem.y[rows], dtype=torch.float32 if problem.numbers else torch.long)

    def predicted(model, rows):
        found = np.asarray(model.predict(inputs(rows)))
        return found.reshape(-1, 1) if problem.numbers else np.eye(problem.Y.shape[1])[found.ravel()]

    best = (np.inf, None)
    for kernel, bandwidth in product(("l2", "l1"), (3.0, 10.0, 30.0)):
        own = {"kernel": kernel, "exponent": 1.0, "bandwidth": bandwidth, "diag": kernel == "l1"}
        model = xRFM(
            {"model": own, "fit": {"reg": 1e-3, "iters": 3, "verbose": False, "early_stop_rfm": True}},
            device="cpu",
            tuning_metric="mse" if problem.numbers else "brier",
            random_state=problem.seed,
        )
        model.fit(*(made(rows) for rows in (problem.fit, problem.held) for made in (inputs, labels)))
        best = min(
            best, (problem.error(predicted(model, problem.held), problem.held), model), key=itemgetter(0)
        )
    return problem.error(predicted(best[1], problem.test), problem.test)


STANDARDIZE = {"kind": "standardize"}
SIDES = {
    "raw": raw,
    "RBFSampler": of_sklearn(RBFSampler),
    "Nystroem": of_sklearn(Nystroem),
    "nystroem": of_kafeat(STANDARDIZE, {"kind": "nystroem"}),
    "fourier": of_kafeat(STANDARDIZE, {"kind": "fourier"}),
    "nystroem, quantile": of_kafeat({"kind": "quantile"}, {"kind": "nystroem"}),
    "nystroem, power": of_kafeat({"kind": "power"}, {"kind": "nystroem"}),
    "nystroem, metric": of_kafeat(STANDARDIZE, {"kind": "metric"}, {"kind": "nystroem"}),
    "nystroem, trees": of_kafeat(STANDARDIZE, {"kind": "nystroem"}, trees=True),
    "nystroem, matern": of_kafeat(STANDARDIZE, {"kind": "nystroem", "kernel": "matern", "nu": 0.5}),
    "fourier, supervised": of_kafeat(
        STANDARDIZE, {"kind": "fourier", "frequencies": "supervised"}, multiples=(None,)
    ),
    "chosen": chosen,
    "tune": tuned,
    "exact rbf": exact,
    "boosting": boosting(),
    "boosting, 600": boosting(max_iter=600, learning_rate=0.05, early_stopping=True, n_iter_no_change=20),
    "xRFM": xrfm,
}
WITHOUT_WIDTH = ("raw", "exact rbf", "boosting", "boosting, 600", "xRFM")
PEERS = ("RBFSampler", "Nystroem")


def table_of(records, sides):
    """Mean errors of every table, and geometric means of their shares of the error of scikit-learn's better map."""
    lines = [f"| table | D | {' | '.join(sides)} |", "|" + "---|" * (len(sides) + 2)]
    shares = {}
    for name, width in sorted({(r["table"], r["width"]) for r in records if r["width"]}):
        own = [r for r in records if r["table"] == name and r["width"] in (width, 0)]
        errors = {side: [r["error"] for r in own if r["side"] == side] for side in sides}
        lines.append(f"| {name} | {width} | {' | '.join(map(cell, errors.values()))} |")
        peer = min((np.mean(errors[side]) for side in PEERS if errors.get(side)), default=0.0)
        for side, found in errors.items():
            if found and peer > 0.0:
                shares.setdefault((width, side), []).append(max(np.mean(found), LEAST) / max(peer, LEAST))
    for width in sorted({width for width, _ in shares}):
        means = [
            np.exp(np.mean(np.log(shares[width, side]))) if (width, side) in shares else None
            for side in sides
        ]
        cells = ["" if mean is None else f"**{mean:.2f}**" for mean in means]
        lines.append(f"| **share of the better map of scikit-learn** | {width} | {' | '.join(cells)} |")
    return "\n".join(lines)


# Of a thousand test rows, a share of errors below this is none.
LEAST = 1e-3


# Tables on which one side is far ahead.
EXTREME = ("texture", "gas", "robot")


def ratios_of(records):
    """Errors of `tune` and of boosting at each width, and their ratios over the tables: means over the seeds."""
    boosted, lines = ("boosting", "boosting, 600"), []
    for width in sorted({r["width"] for r in records if r["side"] == "tune"}):
        lines += [
            f"| table, D = {width} | tune | boosting | 600 rounds | ratio | log loss | boosting | 600 rounds |"
        ]
        lines += ["|---" * 8 + "|"]
        ratios, best = {}, {}
        for name in sorted({r["table"] for r in records if (r["side"], r["width"]) == ("tune", width)}):
            found = {}
            for side in ("tune", *boosted):
                own = [
                    r for r in records if (r["table"], r["side"]) == (name, side) and r["width"] in (0, width)
                ]
                for kind in ("error", "log_loss"):
                    values = [r[kind] for r in own if r.get(kind) is not None]
                    found[side, kind] = float(np.mean(values)) if values else np.nan
            tune, *others = (max(found[side, "error"], LEAST) for side in ("tune", *boosted))
            ratios[name], best[name] = tune / others[0], tune / np.nanmin(others)
            errors, losses = (
                [f"{found[side, kind]:.4f}" for side in ("tune", *boosted)] for kind in ("error", "log_loss")
            )
            lines.append(
                f"| {' | '.join([name, *errors, f'{ratios[name]:.2f}', *losses])} |".replace("nan", "")
            )
        for said, chosen in (
            ("default boosting", ratios),
            ("it, without texture, gas, robot", {n: r for n, r in ratios.items() if n not in EXTREME}),
            ("the better of both", best),
        ):
            r = np.array(list(chosen.values()))
            lines.append(
                f"\nRatio to {said}: geometric mean {np.exp(np.log(r).mean()):.3f}, median {np.median(r):.3f}, "
                f"ahead on {(r < 1.0).sum()} of {len(r)}, behind by more than 5 % on {(r > 1.05).sum()}."
            )
    return "\n".join(lines)


def cell(errors):
    if not errors:
        return ""
    return f"{np.mean(errors):.3f}" + (f" ± {np.std(errors):.3f}" if len(errors) > 1 else "")


def short(table):
    """Return the shares over all tables."""
    head, line, *rows = table.splitlines()
    return "\n".join([head, line, *(row for row in rows if "**" in row)])


def write_page(page, table):
    """Put the table between the marks of a page."""
    text = page.read_text()
    page.write_text(
        re.sub(r"(<!-- made: scores -->\n).*?(<!-- end -->)", rf"\1\n{table}\n\n\2", text, flags=re.S)
    )


def write_records(path, records):
    """Write a record a line."""
    path.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables")
    parser.add_argument("--widths", default="128,512,1024")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--sides", default="; ".join(side for side in SIDES if side != "xRFM"))
    parser.add_argument("--trials", type=int, help="trials of the side tune, instead of two minutes")
    parser.add_argument("--out", type=Path, default=Path("scores.json"))
    parser.add_argument("--page", type=Path, help="a page with <!-- made: scores --> to put the table in")
    args = parser.parse_args()
    global TRIALS  # an option of one of many sides
    TRIALS = args.trials
    warnings.simplefilter("ignore")
    paths = {
        path.stem: path
        for path in sorted([*args.folder.glob("*.parquet"), *args.folder.glob("tabular/*.parquet")])
    }
    names = args.tables.split(",") if args.tables else list(paths)
    sides = [side.strip() for side in args.sides.split(";")]
    records = json.loads(args.out.read_text()) if args.out.exists() else []
    done = {(r["table"], r["side"], r["width"], r["seed"]) for r in records}
    for name in names:
        table = pq.read_table(paths[name])
        for seed in range(args.seeds):
            problem = Problem(name, table, seed, args.rows)
            for side in sides:
                for width in [0] if side in WITHOUT_WIDTH else map(int, args.widths.split(",")):
                    if (name, side, width, seed) in done:
                        continue
                    started = time.perf_counter()
                    error, *loss = np.atleast_1d(SIDES[side](problem, width)).tolist()
                    seconds = round(time.perf_counter() - started, 2)
                    records.append(
                        {
                            "table": name,
                            "side": side,
                            "width": width,
                            "seed": seed,
                            "error": error,
                            **({"log_loss": loss[0]} if loss else {}),
                            "seconds": seconds,
                        }
                    )
                    print(
                        f"{name} {side} D = {width or '-'} seed {seed}: {error:.4f} ({seconds} s)", flush=True
                    )
                    write_records(args.out, records)
    table = table_of(records, sides)
    print(table)
    if {"tune", "boosting"} <= set(sides):
        print(ratios_of([r for r in records if r["table"] in names]))
    if args.page:
        write_page(args.page, short(table))


if __name__ == "__main__":
    main()
