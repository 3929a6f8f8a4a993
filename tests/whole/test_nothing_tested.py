"""Ways in which two runs are equal because nothing was different between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hetero_test.plan.copies import without_copies
from hetero_test.values.variant import Needs, PlannedVariant, Variant
from tests.rigs import Played, play
from tests.scripted import MODEL_FLAGS, always, write_build

pytestmark = pytest.mark.process

HEAD = 'engine = "strata"\n[[variant]]\nid = "a"\nname = "x"\n'


def with_matrix(folder: Path, capsys: pytest.CaptureFixture[str], body: str, *args: str) -> Played:
    """Play a matrix file of one variant."""
    path = folder / "m.toml"
    path.write_text(HEAD + body)
    return play(folder, capsys, args=("--matrix", str(path), *args))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('env = { LC_ALL = "de_DE" }', "hetero-test sets LC_ALL itself"),
        ('env = { HETERO_TEST_MARK = "x" }', "hetero-test sets HETERO_TEST_MARK itself"),
        ('env = { "A=B" = "x" }', "no name of an environment variable"),
        ('env = { "" = "x" }', "no name of an environment variable"),
        ('env = { A = "x\\u0000y" }', "NUL"),
        ('flags = ["--draft-chain-batch"]\n[pinned]\nenv = { LC_ALL = "x" }', "sets LC_ALL itself"),
        ('flags = ["--draft-chain-batch"]\n[baseline]\non_device = { "" = "x" }', "no name"),
        ('flags = ["--draft-chain-batch"]\nfor_each = "device"', "the same each time"),
        ('flags = ["--draft-chain-batch"]\nneeds = { devices = -1 }', "not a number of devices"),
        ('flags = ["--draft-chain-batch"]\nneeds = { devices = 0 }', "not a number of devices"),
        ('flags = ["--max-new", "1"]', "sets --max-new, which hetero-test sets itself"),
        ('flags = ["--tokens-file", "/dev/null"]', "sets --tokens-file"),
    ],
)
def test_what_a_variant_sets_must_reach_the_engine(
    body: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag or variable that the harness overrides is a mistake in the file, never a PASS."""
    told = with_matrix(tmp_path, capsys, body)
    assert told.code == 2, told.stdout
    assert said in " ".join(told.stderr.split())
    assert not told.launches


def test_the_baseline_under_another_name_is_no_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags and environment that the user's own command has already are nothing to compare."""
    monkeypatch.setenv("SOME_SWITCH", "1")
    for body in ('flags = ["--spec", "4"]', 'env = { SOME_SWITCH = "1" }'):
        told = with_matrix(tmp_path, capsys, body)
        assert told.code == 3, told.stdout
        assert "it is the baseline" in told.stderr
        assert not told.launches


@pytest.mark.parametrize(
    ("flags", "wanted", "env", "copy"),
    [
        (("-a", "1"), ("-a", "1"), (), True),
        (("-a", "1", "-b"), ("-a", "1"), (), True),
        (("-a", "1", "-a", "2"), ("-a", "1"), (), False),
        (("-a", "2", "-a", "1"), ("-a", "1"), (), True),
        (("-a", "1", "-b", "-a", "1"), ("-a", "1"), (), True),
        (("-a", "1"), ("-a", "2"), (), False),
        (("-a", "1"), ("-a", "1"), (("X", "1"),), False),
        (("-a", "1"), ("-a", "1"), (("SET", "1"),), True),
        ((), (), (("SET", "1"),), True),
        ((), (), (("SET", "2"),), False),
        ((), ("-a",), (), False),
    ],
)
def test_a_copy_is_told_from_what_only_looks_like_one(
    flags: tuple[str, ...],
    wanted: tuple[str, ...],
    env: tuple[tuple[str, str], ...],
    copy: bool,
) -> None:
    """Of a repeated flag the last one counts, and every variable must have that value."""
    base = PlannedVariant(variant=Variant(id="0", name="base"), planned=True)
    variant = Variant(id="a", name="a", flags=wanted, env=env, needs=Needs())
    planned = replace(base, variant=variant)
    _, found = without_copies((base, planned), flags, {"SET": "1"})
    assert found.planned is not copy


def test_an_engine_that_is_replaced_meanwhile_ends_the_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of two builds are never compared: exit 5, and what was stored says how far it got."""
    told = _played_while(tmp_path, capsys, 'echo "# another build" >> "$0"')
    assert told.code == 5
    assert "the engine was replaced while the matrix ran" in told.stderr
    assert told.json["conclusion"] == "INCONCLUSIVE"
    assert "the engine was replaced" in told.report
    assert len(told.launches) == 1


def test_an_engine_that_is_replaced_in_its_last_run_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where no launch follows."""
    body = 'case "$*" in *"--expert-cache 4400"*) echo "# another build" >> "$0";; esac'
    told = _played_while(tmp_path, capsys, body, "--repeats", "1")
    assert told.code == 5
    assert len(told.launches) == 3


def test_an_engine_that_is_gone_ends_the_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build folder that is cleaned meanwhile is told as that, not as crashes of the engine."""
    told = _played_while(tmp_path, capsys, 'rm "$0"')
    assert told.code == 5
    assert "cannot be read any more" in told.stderr


def test_an_engine_that_is_only_touched_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same bytes at a new time, or in a new file, are the same engine."""
    told = _played_while(tmp_path, capsys, 'cp "$0" "$0.new"; mv "$0.new" "$0"')
    assert told.code == 0, told.stdout + told.stderr


def _played_while(
    folder: Path, capsys: pytest.CaptureFixture[str], body: str, *args: str
) -> Played:
    """Play a matrix whose engine does something to itself in each run."""
    made = write_build(folder / "made") / "strata"
    lines = made.read_text().replace("exec ", f'[ "$1" = --help ] || {{ {body}; }}\nexec ')
    told = folder / "tool"
    told.write_text(lines)

    def build(into: Path) -> None:
        into.write_text(lines.replace(str(folder / "made"), str(folder / "build")))

    write_build(folder / "build")
    build(folder / "build" / "strata")
    from hetero_test.cli.main import main

    out = folder / "out"
    options = ("--build-dir", str(folder / "build"), "--out", str(out), "--only", "1", *args)
    capsys.readouterr()
    code = main([*options, "--", *MODEL_FLAGS])
    said = capsys.readouterr()
    return Played(code=code, out=out, build=folder / "build", stdout=said.out, stderr=said.err)


def test_a_model_file_that_changed_is_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of two models at one path are as little comparable as runs of two engines."""
    model = tmp_path / "shard.gguf"
    model.write_text("one")
    flags = (*MODEL_FLAGS, "--native", str(model))
    known = [*_known(), "--native"]
    args = ("--only", "1", "--repeats", "1")
    assert play(tmp_path, capsys, always(), args=args, flags=flags, known=known).code == 0
    model.write_text("two")
    told = play(tmp_path, capsys, always(), args=(*args, "--resume"), flags=flags, known=known)
    assert told.code == 2
    assert "model file" in told.stderr


def _known() -> tuple[str, ...]:
    from tests.scripted import FLAGS

    return FLAGS


def test_one_prompt_given_twice_is_no_second_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many prompts were compared is told as evidence, so each must be another."""
    for name in ("one", "two"):
        (tmp_path / name).write_text("1000 2000 3000")
    files = ("--tokens-file", str(tmp_path / "one"), "--tokens-file", str(tmp_path / "two"))
    told = play(tmp_path, capsys, args=files)
    assert told.code == 2
    assert "the same ids" in told.stderr
