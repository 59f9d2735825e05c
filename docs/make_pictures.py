"""The pictures of the pages in `kinds/`: `python docs/make_pictures.py [KIND …]`; it takes minutes.

Each shows one row of the kernel, exact and as maps of several widths and seeds have it, along a path of rows: over the
distance, the angle or the ratio to the first of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import kafeat
from kafeat.pictures.canvas import STYLES

FOLDER = Path(__file__).parent / "pictures/kinds"
WIDTHS = (64, 256, 1024)
POINTS = 161
SEEDS, DRAWN = range(15), 5
Path_ = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Shown:
    """The picture of a kind: recipes by their label, rows to fit on, and the path (positions, rows) to look along."""

    recipes: Mapping[str, list[dict[str, Any]]]
    sample: Callable[[], np.ndarray]
    path: Callable[[], Path_]
    over: str
    logarithmic: bool = False
    relative: bool = False
    notes: str = ""
    label: Callable[[np.ndarray], np.ndarray] | None = None


def normal(columns: int = 10) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((2000, columns))


def spheric() -> np.ndarray:
    rows = normal(16)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def distances(columns: int = 10, farthest: float = 8.0) -> Path_:
    """From the origin away, in a direction that no axis has."""
    far = np.linspace(0, farthest, POINTS)
    way = np.random.default_rng(2).standard_normal(columns)
    return far, far[:, None] * way / np.linalg.norm(way)


def between_rows() -> Path_:
    """From one row of the sample through the middle of all to the other side."""
    start = normal()[7]
    far = np.linspace(0, 2 * np.linalg.norm(start), POINTS)
    return far, start * (1 - far / np.linalg.norm(start))[:, None]


def angles(columns: int = 16) -> Path_:
    """Half of a great circle of the unit sphere."""
    turn = np.linspace(0, 180, POINTS)
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((columns, 2)))[0]
    radians = np.deg2rad(turn)[:, None]
    return turn, np.cos(radians) * basis[:, 0] + np.sin(radians) * basis[:, 1]


def ratios() -> Path_:
    """One entry: 1, and then from a thousandth to a thousand."""
    y = np.concatenate([[1.0], np.geomspace(1e-3, 1e3, POINTS)])
    return y, y[:, None]


def entries() -> Path_:
    y = np.concatenate([[0.31], np.linspace(0, 1, POINTS)])
    return y, y[:, None]


def scaled() -> Path_:
    """Four entries of 1, and then all of them larger or smaller."""
    factor = np.concatenate([[1.0], np.geomspace(0.02, 50, POINTS)])
    return factor, np.repeat(factor[:, None], 4, axis=1)


def positive() -> np.ndarray:
    return np.exp(np.random.default_rng(1).standard_normal((2000, 4)))


def wide(columns: int = 2048) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((200, columns))


def widths(kind: str, **more: Any) -> dict[str, list[dict[str, Any]]]:
    return {f"D = {D:,}": [{"kind": kind, "n_components": D, **more}] for D in WIDTHS}


def numerals() -> np.ndarray:
    return np.random.default_rng(1).integers(10**14, 10**15, size=(2000, 1)).astype(float)


def changed() -> Path_:
    """One number of 15 digits, and the same with more and more of its last digits changed."""
    digits = np.random.default_rng(2).integers(1, 9, size=15)
    rows = [int("".join(map(str, np.where(np.arange(15) < 15 - k, digits, digits + 1)))) for k in range(16)]
    return np.arange(16.0), np.array(rows, dtype=float)[:, None]


UNION = [
    {"columns": [f"c{i}" for i in range(5)], "steps": [{"kind": "fourier", "gamma": 0.5}]},
    {
        "columns": [f"c{i}" for i in range(5, 10)],
        "weight": 0.5,
        "steps": [{"kind": "fourier", "gamma": 0.02}],
    },
]


def union(D: int) -> list[dict[str, Any]]:
    maps = [{**one, "steps": [{**one["steps"][0], "n_components": D // 2}]} for one in UNION]
    return [{"kind": "union", "maps": maps}]


def product(D: int) -> list[dict[str, Any]]:
    maps = [{"columns": one["columns"], "steps": [{**one["steps"][0], "n_components": 128}]} for one in UNION]
    return [{"kind": "product", "maps": maps, "n_components": D}]


SHOWN = {
    "arc_cosine": Shown(widths("arc_cosine"), spheric, angles, "angle, degrees", notes="order 1"),
    "fourier": Shown(
        widths("fourier", gamma=0.1), normal, distances, "‖x − y‖", notes="rbf, γ = 0.1, 10 columns"
    ),
    "homogeneous": Shown(
        {f"{2 * n + 1} outputs": [{"kind": "homogeneous", "order": n}] for n in (1, 2, 4)},
        lambda: np.geomspace(1e-3, 1e3, 500)[:, None], ratios, "y/x", True, True, "chi2, over √(xy)",
    ),
    "intersection_bins": Shown(
        {f"{n} outputs": [{"kind": "intersection_bins", "n_bins": n}] for n in (2, 4, 8)},
        lambda: np.linspace(0, 1, 101)[:, None], entries, "y", notes="x = 0.31, largest entry 1",
    ),
    "nystroem": Shown(
        widths("nystroem", gamma=0.1), normal, between_rows, "‖x − y‖", notes="rbf, γ = 0.1, 10 columns"
    ),
    "polynomial_features": Shown(
        {f"degree {p}": [{"kind": "polynomial_features", "degree": p, "gamma": 1.0}] for p in (3,)},
        spheric, angles, "angle, degrees", notes="degree 3, γ = c₀ = 1",
    ),
    "positive_exponential": Shown(
        widths("positive_exponential", gamma=1.0), spheric, angles, "angle, degrees", notes="γ = 1"
    ),
    "product": Shown(
        {f"D = {D:,}": product(D) for D in WIDTHS}, normal, distances, "‖x − y‖",
        notes="rbf on five columns times a wider one on five others",
    ),
    "projection": Shown(
        widths("projection"), wide, lambda: angles(2048), "angle, degrees", notes="2,048 columns, gaussian"
    ),
    "random_maclaurin": Shown(
        widths("random_maclaurin", degree=3, gamma=1.0), spheric, angles, "angle, degrees",
        notes="degree 3, γ = c₀ = 1, 16 columns",
    ),
    "random_subsets": Shown(
        widths("random_subsets", gamma=1.0), spheric, angles, "angle, degrees",
        notes="anova, degree 2, γ = 1, 16 columns",
    ),
    "skewed": Shown(
        widths("skewed"), positive, scaled, "y/x, in each of 4 columns", True, notes="skewed chi2, x = c = 1"
    ),
    "tensor_sketch": Shown(
        widths("tensor_sketch", degree=3, gamma=1.0), spheric, angles, "angle, degrees",
        notes="degree 3, γ = c₀ = 1, 16 columns",
    ),
    "tensor_srht": Shown(
        widths("tensor_srht", degree=3, gamma=1.0), spheric, angles, "angle, degrees",
        notes="degree 3, γ = c₀ = 1, 16 columns",
    ),
    "text": Shown(
        widths("text", columns=["c0"], projection="sparse"), numerals, changed, "digits changed, of 15",
        notes="numbers of 15 digits, projection: sparse",
    ),
    "trees": Shown(
        {f"D = {D}": [{"kind": "trees", "n_components": D, "scale": D**-0.5}] for D in (4, 16)},
        lambda: normal(2), lambda: distances(2, 2.5), "‖x − y‖",
        notes="label: 1 beyond thresholds of either of 2 columns", label=lambda X: np.abs(X).max(axis=1) > 1,
    ),
    "union": Shown(
        {f"D = {D:,}": union(D) for D in WIDTHS}, normal, distances, "‖x − y‖",
        notes="rbf on five columns, and half of a wider one on five others",
    ),
}  # fmt: skip


def draw(kind: str) -> None:
    """One picture of some seeds, with the root mean square error of all of them at each width in its legend."""
    shown, style = SHOWN[kind], STYLES[0]
    figure = Figure(figsize=(6.4, 3.6), dpi=100, facecolor=style.paper, layout="constrained")
    axes = figure.add_subplot()
    at, rows = shown.path()
    # the first row is the one that all are compared with; a path that does not begin with it comes behind
    behind = slice(1, None) if len(at) > POINTS else slice(None)
    by = np.sqrt(rows[behind, 0]) if shown.relative else 1.0
    for hue, (label, steps) in zip(style.hues, shown.recipes.items(), strict=False):
        sample = shown.sample()
        target = None if shown.label is None else shown.label(sample)
        maps = [
            kafeat.fit({"seed": seed, "dtype": "float64", "steps": steps}, sample, target) for seed in SEEDS
        ]
        exact = maps[0].exact_kernel(rows[:1], rows)[0, behind] / by
        features = [fm.transform(rows) for fm in maps]
        near = np.stack([(Z @ Z[0])[behind] / by for Z in features])
        if not axes.lines:
            axes.plot(at[behind], exact, color=style.ink, lw=4, alpha=0.25, label="exact")
        label = f"{label}: error {np.sqrt(np.mean((near - exact) ** 2)):.2g}"
        axes.plot(at[behind], near[:DRAWN].T, color=hue, lw=0.9, label=[label, *["_"] * (DRAWN - 1)])
    axes.set(xlabel=shown.over, ylabel="z(x)·z(y)", title=f"{kind}: {shown.notes}")
    if shown.logarithmic:
        axes.set_xscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    buffer = BytesIO()
    figure.savefig(buffer)
    # few colours are enough, and a fraction of the bytes
    Image.open(buffer).convert("RGB").quantize(128).save(FOLDER / f"{kind}.png", optimize=True)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind in sys.argv[1:] or SHOWN:
        draw(kind)
