"""The number of landmarks, where there are fewer rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Recipe = dict[str, Any]


def limit_landmarks(recipes: list[Recipe], n_rows: int) -> int | None:
    """Let Nyström maps in `recipes` have at most `n_rows` landmarks and outputs. Return the most that were asked for.

    Returns
    -------
    int or None
        The largest number that was lowered, or None if the rows are enough.
    """
    lowered: list[int] = []
    for recipe in _landmark_maps(recipes):
        for key in ("n_components", "n_landmarks"):
            if isinstance(recipe.get(key), int) and recipe[key] > n_rows:
                lowered.append(recipe[key])
                recipe[key] = n_rows
    return max(lowered, default=None)


def _landmark_maps(node: Any) -> Iterator[Recipe]:
    """Yield the recipes of the Nyström maps whose landmarks are drawn from the rows."""
    mapping = isinstance(node, dict)
    if mapping and node.get("kind") == "nystroem" and isinstance(node.get("landmarks", "auto"), str):
        yield node
    for item in node.values() if mapping else node if isinstance(node, list | tuple) else ():
        yield from _landmark_maps(item)
