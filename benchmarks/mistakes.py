"""The mistakes that `mutants.py` can plant: one change each of an expression or a statement."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {
    "min": "max",
    "minimum": "maximum",
    "argmin": "argmax",
    "any": "all",
    "floor": "ceil",
    "cumsum": "cumprod",
}
NAMES |= {new: old for old, new in NAMES.items()}
TALK = {"warn", "warning", "info", "debug", "note", "echo", "secho", "print", "fail", "Panel"}
"""Calls that say something."""
WORDS = {"help", "description", "message", "title", "text", "metavar", "stacklevel", "label"}
"""Keywords that do."""
IN_C = [
    (
        "comparison", r"(?<![<>=!-])(?:<=|>=|==|!=|<|>)(?![<>=])",
        {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    ),
    ("arithmetic", r"(?<= )[-+*/](?= )", {"+": "-", "-": "+", "*": "/", "/": "*"}),
    ("and, or", r"&&|\|\|", {"&&": "||", "||": "&&"}),
    ("constant", r"(?<![\w.])[0-9](?![\w.])", {str(n): str(n + 1) for n in range(10)}),
]  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """Bytes of a file that are replaced, and the lines whose tests can find it."""

    source: Path
    path: str
    kind: str
    line: int
    lines: tuple[int, ...]
    start: int
    end: int
    new: str

    def text(self) -> bytes:
        whole = self.source.read_bytes()
        return whole[: self.start] + self.new.encode() + whole[self.end :]

    def diff(self) -> str:
        before, after = (text.decode().splitlines() for text in (self.source.read_bytes(), self.text()))
        lines = list(unified_diff(before, after, n=0, lineterm=""))[3:]
        return "\n".join(line for line in lines if line[:1] in "-+")


def in_c(source: Path, root: Path) -> Iterator[Mistake]:
    """Yield the mistakes of a file in C: operators and small numbers outside of comments, macros and loops' heads."""
    text = source.read_text()
    blank = re.sub(
        r"/\*.*?\*/|^#.*?$|\benum .*?;", lambda found: re.sub(r"\S", " ", found[0]), text, flags=re.S | re.M
    )
    for kind, pattern, new in IN_C:
        for found in re.finditer(pattern, blank):
            head, line = blank[: found.start()], blank.count("\n", 0, found.start()) + 1
            if kind == "arithmetic" and head.endswith(("(", ", ")):
                continue
            start = len(text[: found.start()].encode())
            path = str(source.relative_to(root))
            yield Mistake(source, path, kind, line, (), start, start + len(found[0]), new[found[0]])


def in_python(source: Path, root: Path) -> Iterator[Mistake]:
    """Yield the mistakes of a module, but for its texts, types and what is shown of an object."""
    text = source.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    bodies = {node: _body(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    everything = tuple(sorted({line for lines in bodies.values() for line in lines}))
    for node, kind, new, around in _walk(tree, None):
        start, end = (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )
        inside = around is not None and node.lineno in bodies[around] and kind != "default"
        lines = (node.lineno,) if inside else bodies[around] if around else everything
        code = "pass" if new is None else ast.unparse(new)
        code = f"({code})" if isinstance(new, ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp) else code
        yield Mistake(source, str(source.relative_to(root)), kind, node.lineno, lines, start, end, code)


def _body(function: ast.FunctionDef) -> tuple[int, ...]:
    return tuple(range(function.body[0].lineno, (function.end_lineno or 0) + 1))


Found = tuple[ast.AST, str, ast.AST | None, ast.FunctionDef | None]


def _walk(node: ast.AST, around: ast.FunctionDef | None) -> Iterator[Found]:
    """Yield each change of a node and of what is in it, with the function that it is in."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in TALK or name.endswith(("Error", "Warning", "Refusal")):
            return
    if isinstance(node, ast.FunctionDef):
        if node.name in {"__repr__", "__str__", "_repr_html_"} or _overload(node):
            return
        around = node
    elif isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ):
        return
    yield from ((*change, around) for change in _changes(node))
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "exc", "msg"} or (
            isinstance(node, ast.Slice) and field == "step"
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            words = isinstance(child, ast.keyword) and child.arg in WORDS
            if isinstance(child, ast.AST) and not words:
                yield from _walk(child, around)


def _overload(node: ast.FunctionDef) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, ast.AST | None]]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
            yield node, "comparison", _with(node, ops=[SWAPPED[type(operator)]()])
        case ast.BoolOp():
            yield node, "and, or", _with(node, op=SWAPPED[type(node.op)]())
        case ast.BinOp(op=operator, left=left, right=right) if type(operator) in SWAPPED:
            if not any(
                isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", 0), str)
                for side in (left, right)
            ):
                yield node, "arithmetic", _with(node, op=SWAPPED[type(operator)]())
        case ast.Constant(value=bool() | int() | float() as value):
            yield node, "constant", ast.Constant(_other(value))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.comprehension(ifs=[test]):
            yield test, "condition", ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield (
                value,
                "return",
                ast.UnaryOp(ast.Not(), value) if isinstance(value, ast.Compare) else ast.Constant(None),
            )
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            if not _talk(node):
                yield node, "statement", None
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "statement", None
        case ast.Name(id=name) if name in NAMES:
            yield node, "min, max", ast.Name(NAMES[name])
        case ast.Attribute(attr=name) if name in NAMES:
            yield node, "min, max", _with(node, attr=NAMES[name])
    if isinstance(node, ast.Call):
        yield from _arguments(node)
    if isinstance(node, ast.FunctionDef):
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if isinstance(default, ast.Constant) and isinstance(default.value, bool | int | float):
                yield default, "default", ast.Constant(_other(default.value))


def _talk(node: ast.AST) -> bool:
    call = getattr(node, "value", None)
    return isinstance(call, ast.Call) and ast.unparse(call.func).rsplit(".", 1)[-1] in TALK


def _arguments(node: ast.Call) -> Iterator[tuple[ast.AST, str, ast.AST | None]]:
    for keyword in node.keywords:
        left = [other for other in node.keywords if other is not keyword]
        if keyword.arg == "axis" and ast.unparse(keyword.value) in {"0", "1", "-1"}:
            other = ast.Constant(1 if ast.unparse(keyword.value) == "0" else 0)
            moved = [ast.keyword("axis", other) if same is keyword else same for same in node.keywords]
            yield node, "axis", _with(node, keywords=moved)
        elif keyword.arg and keyword.arg not in WORDS:
            yield node, "argument", _with(node, keywords=left)
    if (
        len(node.args) > 1
        and not isinstance(node.args[-1], ast.Starred)
        and getattr(node.func, "id", "") != "isinstance"
    ):
        yield node, "argument", _with(node, args=node.args[:-1])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _other(value: bool | int | float) -> bool | float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) or not value else 2 * value
