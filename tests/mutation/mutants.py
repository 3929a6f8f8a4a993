"""One small change to a module at a time: a guard removed, inverted, or moved by one.

Words are left alone, and so are assertions and annotations: they state what a type checker is
to believe, and decide nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

INVERTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}
ENUMS = {
    "Result": ["PASS", "FAIL", "INCONCLUSIVE", "SKIPPED", "NOT_CLAIMED"],
    "Bond": ["BASELINE", "ANCHOR", "HOME", "UNCLAIMED", "EXCESS", "NONE"],
    "Kind": ["REPEAT", "EXACT", "ANCHOR"],
    "Conclusion": ["PASS", "FAIL", "INCONCLUSIVE"],
}
"""Members are taken for the next one."""

Change = Callable[[ast.AST], ast.AST | None]


@dataclass(frozen=True)
class Mutant:
    """A changed module."""

    line: int
    what: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(source)
    for place, node in enumerate(ast.walk(tree)):
        if place in _left_alone(tree):
            continue
        for what, change in _changes(node):
            copied = deepcopy(tree)
            target = next(n for at, n in enumerate(ast.walk(copied)) if at == place)
            new = change(target)
            if new is not None:
                _Replace(target, new).visit(copied)
            yield Mutant(getattr(node, "lineno", 0), what, ast.fix_missing_locations(copied))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().generic_visit(node)


def _left_alone(tree: ast.Module) -> set[int]:
    """Places of nodes that decide nothing."""
    dull: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Assert | ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parts = [node.returns, *node.decorator_list, *(a.annotation for a in arguments)]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.decorator_list]
        dull |= {id(each) for part in parts if part is not None for each in ast.walk(part)}
    return {place for place, node in enumerate(ast.walk(tree)) if id(node) in dull}


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What can be changed about one node, in words, and how."""
    text = ast.unparse(node).splitlines()[0][:70] if isinstance(node, ast.expr | ast.stmt) else ""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        test = ast.unparse(node.test)[:70]
        for always in (True, False):
            if not (always and isinstance(node, ast.While)):
                yield f"'{test}' is always {always}", _set(test=ast.Constant(always))
    if isinstance(node, ast.comprehension):
        for at, condition in enumerate(node.ifs):
            yield f"without 'if {ast.unparse(condition)[:70]}'", _drop("ifs", at)
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"and/or of '{text}'", _set(op=other)
        for at, value in enumerate(node.values):
            yield f"without '{ast.unparse(value)[:70]}' in '{text}'", _drop("values", at)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"without 'not' in '{text}'", lambda found: getattr(found, "operand")  # noqa: B009
    if isinstance(node, ast.Compare) and type(node.ops[0]) in INVERTED:
        op = INVERTED[type(node.ops[0])]()
        yield f"'{text}' inverted or moved by one", _set(ops=[op, *node.ops[1:]])
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield f"other operator in '{text}'", _set(op=ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield f"{NAMES[node.id]} for {node.id}", _set(id=NAMES[node.id])
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{not node.value} for {node.value}", _set(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value + 1} for {node.value}", _set(value=node.value + 1)
    if isinstance(node, ast.Tuple | ast.Set) and len(node.elts) > 1 and _members(node.elts):
        for at, member in enumerate(node.elts):
            yield f"without {ast.unparse(member)} in '{text}'", _drop("elts", at)
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ENUMS:
        members = ENUMS[ast.unparse(node.value)]
        other_name = members[(members.index(node.attr) + 1) % len(members)]
        yield f"{other_name} for {text}", _set(attr=other_name)
    if isinstance(node, ast.Continue | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield f"without '{text}'", lambda _: ast.Pass()


def _members(nodes: list[ast.expr]) -> bool:
    """Whether these are members of an enumeration."""
    return all(isinstance(n, ast.Attribute) and n.attr.isupper() for n in nodes)


def _set(**values: object) -> Change:
    def change(node: ast.AST) -> None:
        for name, value in values.items():
            setattr(node, name, deepcopy(value))

    return change


def _drop(field: str, at: int) -> Change:
    def change(node: ast.AST) -> ast.AST | None:
        left: list[ast.AST] = [each for n, each in enumerate(getattr(node, field)) if n != at]
        if isinstance(node, ast.BoolOp) and len(left) == 1:
            return left[0]
        setattr(node, field, left)
        return None

    return change
