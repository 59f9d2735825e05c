"""A file of the trials made so far, one JSON object a line, so that a killed search can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict

from kafeat.io.storage.atomic import naming
from kafeat.jobs.tune.space import Candidate
from kafeat.jobs.tune.trials import Outcome, Size

_Run = Callable[[Candidate, Size], Outcome]


class Journal:
    """The outcomes in a file, if its key is the same; else the file begins anew. `known` is their number."""

    def __init__(self, path: str, key: str, resume: bool) -> None:
        self._path, self._known = path, dict[str, Outcome]()
        if resume:
            self._known = _read(path, key)
        self.known = len(self._known)
        with naming(path), open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"key": key}) + "\n")
            file.writelines(_line(name, outcome) for name, outcome in self._known.items())

    def remembering(self, run: _Run) -> _Run:
        """Return a function that takes outcomes from the file, and adds new ones to it."""

        def remembered(candidate: Candidate, size: Size) -> Outcome:
            name = json.dumps([asdict(candidate), size])
            if name not in self._known:
                self._known[name] = run(candidate, size)
                with naming(self._path), open(self._path, "a", encoding="utf-8") as file:
                    file.write(_line(name, self._known[name]))
            return self._known[name]

        return remembered

    def remove(self) -> None:
        """Remove the file after a complete search."""
        with naming(self._path):
            os.unlink(self._path)


def _line(name: str, outcome: Outcome) -> str:
    return json.dumps({"trial": name, **asdict(outcome)}) + "\n"


def _read(path: str, key: str) -> dict[str, Outcome]:
    """Return the outcomes of a file with this key; the last line may be incomplete."""
    try:
        with naming(path), open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
    except FileNotFoundError:
        return {}
    try:
        if json.loads(lines[0]) != {"key": key}:
            return {}
        records = [json.loads(line) for line in lines[1:]]
        return {
            record.pop("trial"): Outcome(**{**record, "resampled": tuple(record["resampled"])})
            for record in records
        }
    except (IndexError, KeyError, TypeError, ValueError):
        return {}
