"""Mutations of one place of a source file: by operators on the syntax tree of Python, and on lines of C++."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

EXTREMES = {"min": "max", "minimum": "maximum", "fmin": "fmax", "least": "most"}
EXTREMES |= {other: name for name, other in EXTREMES.items()}
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
CONDITIONS = (ast.If, ast.While, ast.IfExp)
SIMPLE = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
NO_CPU = re.compile("device|gpu|cupy", re.IGNORECASE)
"""Names of functions and classes that run on a GPU alone."""


class Mutation(NamedTuple):
    """New bytes for those from `start` to `end` of a file."""

    start: int
    end: int
    new: bytes
    what: str

    def apply(self, text: bytes) -> bytes:
        return text[: self.start] + self.new + text[self.end :]


def mutations(text: bytes, *, python: bool) -> list[Mutation]:
    """Return all mutations of a source file, in its order."""
    found = sorted(set(_Python(text).of(ast.parse(text)) if python else _cpp(text)))
    return [each for each in found if not python or _differs(text, each)]


def _differs(text: bytes, mutation: Mutation) -> bool:
    try:
        compile(mutation.apply(text), "", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return text[mutation.start : mutation.end] != mutation.new


class _Python:
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.lines = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the mutations of a node and of those below it, except of annotations, docstrings and GPU code."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and NO_CPU.search(node.name):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        yield from self.here(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.of(child)

    def here(self, node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                yield self.put(node, self.source(node.left), "drop a term")
                if isinstance(node.op, ast.Add) and not isinstance(node.left, ast.BinOp):
                    yield self.put(node, self.source(node.right), "drop a term")
            case ast.BoolOp(values=[first, *others]):
                word = b" and " if isinstance(node.op, ast.And) else b" or "
                for i in range(len(others) + 1):
                    kept = [self.source(value) for k, value in enumerate([first, *others]) if k != i]
                    yield self.put(node, b"(" + word.join(kept) + b")", "drop a condition")
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    if new := COMPARISONS.get(type(op)):
                        start, end = self.span(left)[1], self.span(right)[0]
                        between = re.sub(rb"[<>=!]+", new.encode(), self.text[start:end], count=1)
                        yield Mutation(start, end, between, "change a comparison")
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in EXTREMES:
                end = self.span(node)[1]
                yield Mutation(end - len(name), end, EXTREMES[name].encode(), "swap minimum and maximum")
            case ast.Constant(value=bool() as value):
                yield self.put(node, str(not value).encode(), "negate a constant")
            case ast.Constant(value=int() | float() as value):
                yield self.put(node, repr(value + 1).encode(), "change a constant by 1")
            case ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call()):
                yield self.put(node, b"pass", "skip a statement")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self.put(node, b"pass", "skip a statement")
        if isinstance(node, CONDITIONS):
            yield self.put(node.test, b"(not " + self.source(node.test) + b")", "negate a condition")

    def source(self, node: ast.AST) -> bytes:
        start, end = self.span(node)
        source = self.text[start:end]
        return source if isinstance(node, SIMPLE) else b"(" + source + b")"

    def put(self, node: ast.AST, new: bytes, what: str) -> Mutation:
        return Mutation(*self.span(node), new, what)


# --- C++ --------------------------------------------------------------------------------------------------------------

WIDER = {b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">", b"==": b"!=", b"!=": b"=="}
BY_LINE = (
    (r"(?<= )([<>]=?|[!=]=)(?= )", lambda found: WIDER[found], "change a comparison"),
    (rf"\b({'|'.join(EXTREMES)})(?=\()", lambda found: EXTREMES[found.decode()].encode(), "swap minimum and maximum"),
    (r"(?<![\w.\"'])\d+(?![\w.\"'])", lambda found: b"%d" % (int(found) + 1), "change a constant by 1"),
    (r" [-+*/] [\w.]+(\[[^][]*\]|\([^()]*\))?(?=[];,) ])", lambda found: b"", "drop a term"),
    (r"^ *[^\s(){}]+(\[[^=;]*\])? [-+*/|&]?= [^;{}]*;$", lambda found: b";", "skip a statement"),
    (r"(?<= )(&&|\|\|) [^(){}|&]+(?=\))", lambda found: b"", "drop a condition"),
)
NO_CODE = re.compile(rb"\s*(#|//|static_assert|template|using|constexpr int |.*__builtin_prefetch)")


def _cpp(text: bytes) -> Iterator[Mutation]:
    start = 0
    for line in text.splitlines(keepends=True):
        code = re.sub(rb"//.*", b"", line).rstrip()
        if not NO_CODE.match(code):
            for pattern, new, what in BY_LINE:
                for found in re.finditer(pattern.encode(), code):
                    yield Mutation(start + found.start(), start + found.end(), new(found[0]), what)
            for found in re.finditer(rb"\b(?:if|while) \(", code):
                if (end := _closing(code, found.end())) is not None:
                    condition = b"!(" + code[found.end() : end] + b")"
                    yield Mutation(start + found.end(), start + end, condition, "negate a condition")
        start += len(line)


def _closing(code: bytes, position: int) -> int | None:
    """Return the position of the parenthesis that closes the one before a position, or None if it is not in the line."""
    depth = list(accumulate(({40: 1, 41: -1}.get(byte, 0) for byte in code[position:]), initial=1))
    return position + depth.index(0) - 1 if 0 in depth else None
