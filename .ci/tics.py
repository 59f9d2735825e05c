"""Count the tics of the project's English: `tics.py` fails if one is more frequent than its limits, which only fall.

Pages are README.md and docs/ without reference/ and decisions/, without code. Help is docs/reference/cli.md and the
docstrings of public functions, classes and methods. Code is every docstring and comment of kafeat/. Write instead:
accepts for takes, with or after for beside or behind, "is not a" for "is no", because for as, "training rows" for "the
fit", and a plain subject first.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = {  # at most so many in pages, in help, and in code
    r"\btakes?\b[^.]{0,40}\bfor\b": (0, 1, 2),
    r"(?<![Tt]here )\b(is|are) no\b(?! (longer|more|worse|better)\b)": (1, 0, 0),
    r", too\b": (1, 0, 2),
    r"\b(beside|behind)\b": (2, 0, 4),
    r"\b(of|at) the fit\b": (4, 4, 14),
    r"(^|[.!?] )Of (a|more|at most|many)\b": (0, 0, 0),
    r"\b(anew|hardly|the former)\b": (0, 0, 0),
    r", as (it|they|the|a|this)\b": (2, 2, 29),
}
YOU = r"\b[Yy]ou(rs?|rself)?\b"
LEAST_YOU = 150
CODE = re.compile(r"^```.*?^```|^    .*?$|`[^`\n]*`|\$\$.*?\$\$", flags=re.M | re.S)


def pages() -> Iterator[tuple[str, str]]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not {"reference", "decisions"} & set(path.parts):
            yield path.relative_to(ROOT).as_posix(), CODE.sub("", path.read_text(encoding="utf-8"))


def help_texts() -> Iterator[tuple[str, str]]:
    name = "docs/reference/cli.md"
    yield name, CODE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    for module in map(import_module, ("kafeat", "kafeat.sklearn", "kafeat.onnx")):
        for public in module.__all__:
            thing = getattr(module, public)
            members = inspect.getmembers(thing, callable) if inspect.isclass(thing) else []
            for path, one in [(public, thing), *((f"{public}.{name}", member) for name, member in members)]:
                if not path.partition(".")[2].startswith("_") and callable(one):
                    yield f"{module.__name__}.{path}", inspect.getdoc(one) or ""


def code_texts() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "kafeat").rglob("*.py")):
        words = re.findall(r'""".*?"""|(?:^|  ) *# .*?$', path.read_text(encoding="utf-8"), flags=re.M | re.S)
        yield path.relative_to(ROOT).as_posix(), re.sub(r"`[^`\n]*`", "", "\n\n".join(words))


def main() -> None:
    sides = [dict(pages()), dict(help_texts()), dict(code_texts())]
    mistakes = []
    for tic, limits in LIMITS.items():
        for name, texts, limit in zip(("pages", "help", "code"), sides, limits, strict=True):
            found = [(path, one[0]) for path, text in texts.items() for one in re.finditer(tic, text, re.M)]
            if len(found) > limit:
                places = "\n".join(f"  {path}: {words.strip()}" for path, words in found)
                mistakes.append(f"{name}: expected at most {limit} of /{tic}/, got {len(found)}:\n{places}")
            elif "-v" in sys.argv:
                print(f"{len(found):4} of {limit:3}  {name}  {tic}")
    you = sum(len(re.findall(YOU, text)) for text in sides[0].values())
    if you < LEAST_YOU:
        mistakes.append(f"pages: expected 'you' at least {LEAST_YOU} times, got {you}")
    if mistakes:
        raise SystemExit("\n".join(mistakes))


if __name__ == "__main__":
    main()
