"""No name that one engine invented is known outside that engine's folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hetero_test
from hetero_test.values.reading import Factor, Row

PACKAGE = Path(hetero_test.__file__).parent
FOLDERS = sorted(
    path for path in (PACKAGE / "engines").iterdir() if (path / "adapter.py").is_file()
)
NAMED = {Factor.__name__: "name", Row.__name__: "label"}
"""What hands over a typed fact, and the argument that names it."""


def texts(file: Path) -> set[str]:
    """Every text that stands in a file, docstrings apart."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if hasattr(node, "body")]
    said = {
        id(statement.value)
        for body in bodies
        if isinstance(body, list)
        for statement in body
        if isinstance(statement, ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    }


def handed_over(folder: Path) -> set[str]:
    """The names of all typed facts in an engine's folder, and the names in its context."""
    found: set[str] = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                wanted = NAMED.get(node.func.id)
                named = [each.value for each in node.keywords if each.arg == wanted]
                found |= {ast.literal_eval(value) for value in named}
            elif isinstance(node, ast.FunctionDef) and node.name == "_context":
                found |= context_names(node)
    return found


def context_names(function: ast.FunctionDef) -> set[str]:
    """The keys that a function puts into a table, as far as they are written out."""
    keys: list[ast.expr | None] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            keys += node.keys
        elif isinstance(node, ast.Subscript):
            keys.append(node.slice)
    return {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_engine_names_what_it_hands_over(folder: Path) -> None:
    """A reading of an engine without any such name would leave the next rule nothing to hold."""
    assert handed_over(folder)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_name_of_an_engine_is_known_outside_its_folder(folder: Path) -> None:
    """What the judge, the schedule or a report needs of a run has a field, not a name."""
    names = handed_over(folder)
    # Triage estimates some of what an engine measures, under the same words, and reads no run.
    apart = (folder, PACKAGE / "triage")
    others = (f for f in PACKAGE.rglob("*.py") if not any(map(f.is_relative_to, apart)))

    known = {file.relative_to(PACKAGE): names & texts(file) for file in others}
    assert {file: held for file, held in known.items() if held} == {}


def test_the_known_names_are_among_those_that_are_looked_for() -> None:
    """The rule looks at names that are really handed over."""
    strata, llama = (handed_over(PACKAGE / "engines" / name) for name in ("strata", "llama_cpp"))

    assert {"pcie_share", "swaps", "native_pack"} <= strata
    assert {"repacked", "graph splits", "graph_splits", "drafts_tokens"} <= llama
