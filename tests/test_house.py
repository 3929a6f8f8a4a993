"""The plan of the house, held against what is imported: inside functions and for types too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import hetero_test

PACKAGE = Path(hetero_test.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
FLOORS = re.search(
    r"<!-- floors -->\n```\n(.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), re.DOTALL
)
"""The picture of the rooms, the highest floor first; a room imports from lower ones only."""
FILES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in PACKAGE.rglob("*.py")
}


def imported(path: Path) -> Iterator[str]:
    """The files of the package that one file imports from, each by its path without suffix."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
            names = [name if located(name) else module for name in names]
        yield from filter(None, map(located, names))


def located(module: str) -> str | None:
    """The file of a dotted name of the package; None for what is none."""
    top, _, rest = module.partition(".")
    inside = rest.replace(".", "/")
    found = (name for name in (inside, f"{inside}/__init__".lstrip("/")) if name in FILES)
    return next(found, None) if top == "hetero_test" else None


def room(file: str) -> str:
    """The folder of a file, or the file itself where it stands on top of the package."""
    folder, _, name = file.rpartition("/")
    return folder or {"__init__": "hetero_test"}.get(name, name)


ARROWS = {file: set(imported(path)) - {file} for file, path in FILES.items()}


def test_no_arrow_between_rooms_runs_back_up() -> None:
    """A room imports from lower floors only, so rooms form no circle either."""
    assert FLOORS is not None
    lines = reversed(FLOORS.group(1).splitlines())
    floor = {name: number for number, names in enumerate(lines) for name in names.split()}
    assert {room(file) for file in FILES} == set(floor) | {"triage"}
    back = [
        f"{file} -> {other}"
        for file, others in ARROWS.items()
        for other in others
        if room(file) != room(other) and floor[room(other)] >= floor[room(file)]
    ]
    assert not back


def test_no_circle_among_files() -> None:
    """Any two files can be read one after the other; a circle raises, and names its files."""
    assert len(tuple(TopologicalSorter(ARROWS).static_order())) == len(FILES)


def test_no_file_is_longer_than_400_lines() -> None:
    """A file of more lines is two nouns."""
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in FILES.items()}
    assert not {name: count for name, count in lines.items() if count > 400}


def test_every_room_says_what_it_is_for() -> None:
    """What comes in and what goes out stands in the docstring of its ``__init__``."""
    folders = {path.parent for path in FILES.values()}
    for folder in folders:
        text = (folder / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), folder


def test_parsed_options_stay_in_the_command_line() -> None:
    """Below ``cli`` no signature takes an ``argparse.Namespace``: options are frozen values."""
    for name, path in FILES.items():
        if room(name) != "cli":
            assert "argparse.Namespace" not in path.read_text(encoding="utf-8"), name


def test_the_package_is_called_like_the_distribution() -> None:
    """Nothing else can be imported from ``harness``, whose name another distribution has too."""
    importable = {path.relative_to(PACKAGE.parent).parts[0] for path in FILES.values()}
    importable |= {path.name for path in PACKAGE.parent.glob("*.py")}
    assert importable == {"hetero_test"}


def test_each_public_class_has_a_name_of_its_own() -> None:
    """One meaning a name: whoever looks a class up finds the one that is meant."""
    found: dict[str, list[str]] = {}
    for file, path in FILES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(file)
    assert not {name: files for name, files in found.items() if len(files) > 1}
