"""Matrix files: what they may hold, and how every mistake in one is told."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.errors import ExitCode, MatrixError, UsageError
from hetero_test.formats import toml_lines
from hetero_test.plan import matrix
from hetero_test.plan.matrix import find
from hetero_test.resources import folder

GOOD = """
engine = "strata"

[[variant]]
id = "1"
name = "one"
flags = ["--main-device", "1"]
"""


def write(folder: Path, text: str) -> str:
    path = folder / "my.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def complaints_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(MatrixError) as caught:
        find(write(folder, text))
    assert caught.value.exit_code is ExitCode.USAGE
    prefix = str(folder / "my.toml") + ":"
    assert all(line.startswith(prefix) for line in caught.value.complaints)
    return [line.removeprefix(prefix) for line in caught.value.complaints]


def test_the_shipped_strata_matrix_has_the_bash_harness_variants() -> None:
    """Variants 0 to 7 are those of the bash harness, flag for flag."""
    found = find("strata")
    role = ("--main-device", "0", "--draft-device", "1")
    assert found.baseline.id == "0"
    assert found.baseline.flags == ()
    assert {v.id: v.flags for v in found.variants} == {
        "1": role,
        "2": ("--main-device", "1", "--draft-device", "0"),
        "3": (*role, "--draft-prefill-parallel"),
        "4": (*role, "--draft-chain-batch"),
        "5": (*role, "--draft-prefill-parallel", "--draft-chain-batch"),
        "6": ("--auto-roles",),
        "7": ("--draft-chain-batch",),
    }
    assert {v.id: v.needs.devices for v in found.variants if v.id in "17"} == {
        "1": (">=", 2),
        "7": ("==", 1),
    }
    assert found.pinned_flags == (
        *("--adapt-every", "0"),
        *("--suffix-draft", "0"),
        *("--pcie-frac", "0"),
    )
    assert found.pinned_env == (("STRATA_IQ_MT_MIN", "1"),)


@pytest.mark.parametrize("name", matrix.shipped())
def test_every_shipped_matrix_is_valid(name: str) -> None:
    """A matrix that ships loads without a complaint and names the schema for editors."""
    assert find(name).variants
    text = (folder("matrices") / f"{name}.toml").read_text()
    assert text.startswith("#:schema ./schema.json\n")


def test_the_committed_schema_is_current() -> None:
    """matrices/schema.json is what ``python -m hetero_test.plan.matrix`` prints."""
    committed = folder("matrices") / "schema.json"
    assert committed.read_text(encoding="utf-8") == matrix.schema()
    assert json.loads(matrix.schema())["properties"]["variant"]


def test_all_mistakes_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    """A file with five mistakes gives five complaints, in the order of their lines."""
    text = """engine = "srata"
[[variant]]
id = "1"
nam = "x"
flags = ["a",
  3]
[[variant]]
id = "1"
name = "y"
needs = { devices = "many" }
flags = ["x"]
"""
    assert complaints_of(tmp_path, text) == [
        "1: engine: unknown engine 'srata', did you mean \"strata\"? "
        "(known: strata, llama_cpp, ik_llama)",
        "2: variant[0].name: missing",
        '4: variant[0].nam: unknown key, did you mean "name"?',
        "6: variant[0].flags[1]: input should be a valid string (got 3)",
        "8: variant[1].id: '1' is already the id of variant[0]",
        "10: variant[1].needs.devices: not a number of devices: 'many' "
        '(write ">=2", "==1" or "<=4")',
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace('flags = ["--main-device", "1"]', ""), "so it is the baseline"),
        (GOOD + GOOD[GOOD.index("[[") :].replace('"1"\n', '"2"\n', 1), "the same flags and env as"),
        (GOOD + '[[variant]]\nid = "1f"\nname = "x"\nflags = ["a"]\n', "extra runs of variant '1'"),
        (GOOD.replace('id = "1"', 'id = "../x"'), "pattern"),
        (GOOD.replace('id = "1"', 'id = "0"'), "already the id of the baseline"),
        (GOOD + "[pinned]\nflag = []\n", 'did you mean "flags"?'),
        (GOOD + "needs = { devices = true }\n", "variant[0].needs.devices"),
        ('engine = "strata"\nvariant = []\n', "at least 1 item"),
        ('engine = "strata"\n', "variant: missing"),
        (GOOD.replace('"--main-device"', '"a\\u0000b"'), "NUL"),
        ("engine = [", "not TOML"),
        ("engine = 1\nengine = 2\n", "not TOML"),
    ],
)
def test_what_does_not_hold_together_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """Each kind of mistake is told with file and line, and nothing is made of the file."""
    assert any(told in line for line in complaints_of(tmp_path, text)), complaints_of(
        tmp_path, text
    )


def test_a_file_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are a mistake of the file, with the line they stand in."""
    path = tmp_path / "my.toml"
    path.write_bytes(b'engine = "strata"\n# \xff\n')
    with pytest.raises(MatrixError, match=r"my\.toml:2: .*UTF-8"):
        find(str(path))


def test_a_missing_file_and_an_unknown_name_are_told(tmp_path: Path) -> None:
    """A name that is misspelt gets a suggestion; a path that is not there says so."""
    with pytest.raises(UsageError, match='did you mean "strata"'):
        find("stata")
    with pytest.raises(UsageError, match=r"none\.toml.*No such file"):
        find(str(tmp_path / "none.toml"))


NAMES = st.text("abc", min_size=1, max_size=3)
SCALARS = st.one_of(
    st.integers(-5, 5),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text("ab #[]{}=,.\"'\\\n", max_size=6),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


def render(value: object, lines: bool) -> str:
    """A value as TOML, its arrays over several lines if asked for."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        gap = "\n" if lines else " "
        return "[" + gap + f",{gap}".join(render(v, lines) for v in value) + gap + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {render(v, lines=False)}" for k, v in value.items()) + " }"
    return repr(value)


@given(
    st.lists(
        st.tuples(st.sampled_from(["table", "array"]), NAMES, st.dictionaries(NAMES, VALUES)),
        max_size=5,
    ),
    st.booleans(),
)
def test_every_value_of_any_toml_text_has_its_line(
    parts: list[tuple[str, str, dict[str, object]]], lines: bool
) -> None:
    """The line that the locator gives for a key is the line on which that key is written."""
    text = ""
    wanted: dict[tuple[str | int, ...], int] = {}
    counts: dict[str, int] = {}
    used: set[str] = set()
    for kind, name, pairs in parts:
        key = f"{kind}_{name}"
        if kind == "table" and key in used:
            continue
        used.add(key)
        path: tuple[str | int, ...] = (key,)
        if kind == "array":
            counts[key] = counts.get(key, -1) + 1
            path = (key, counts[key])
        text += f"[[{key}]] # [x]\n" if kind == "array" else f"[{key}]\n"
        wanted[path] = text.count("\n")
        for inner, value in pairs.items():
            wanted[(*path, inner)] = text.count("\n") + 1
            text += f"{inner} = {render(value, lines)} # it's \"so\n"
    found = toml_lines.parse(text, name="x.toml")
    assert found.data == tomllib.loads(text)
    assert {path: found.line(path) for path in wanted} == wanted


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("9" * 5000, "x.toml:2: not TOML: a whole number has 64 bits in TOML"),
        ("9_" * 5000 + "9", "x.toml:2: not TOML: a whole number has 64 bits in TOML"),
        ("[1,\n0x" + "f" * 5000 + "]", "x.toml:3: a[1]: a whole number has 64 bits in TOML"),
        ("{ b = 9223372036854775808 }", "x.toml:2: a.b: a whole number has 64 bits in TOML"),
        ("[\n" * 5000, "x.toml:102: not TOML: nested too deeply"),
        ("[\"[[[[\", '[[', # [[\n" + "[" * 5000, "x.toml:3: not TOML: nested too deeply"),
    ],
)
def test_what_no_toml_reader_takes_is_told(value: str, told: str) -> None:
    """Numbers without end and nesting without end, with the line."""
    with pytest.raises(MatrixError) as caught:
        toml_lines.parse(f"# 1\na = {value}\n", name="x.toml")
    assert told in str(caught.value)
    assert toml_lines.parse("a = -9223372036854775808", name="x").data == {"a": -(2**63)}


def test_items_of_arrays_and_inline_tables_have_their_own_lines() -> None:
    """In a value that spans lines each item is told with its own line; nested arrays too."""
    text = (
        "a = [\n  1,\n  [[2], [\n 3]],\n]\n"
        'b.c = { d = 1, "e f" = [4] }\n"q.r" = """\n[x]\n"""\nz=1\n'
    )
    found = toml_lines.parse(text, name="x")
    assert [
        found.line(path)
        for path in (("a", 0), ("a", 1), ("a", 1, 1, 0), ("b", "c", "e f", 0), ("q.r",), ("z",))
    ] == [2, 3, 4, 6, 7, 10]
