"""The build folder: two programs that run anywhere, and models that the flags name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hetero_test.bundled.build import DemoBuild, write_build
from tests.bundled.engine import Engine, Run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process


def start(build: DemoBuild, *flags: str, env: dict[str, str] | None = None) -> Run:
    """Run ``strata`` as a process, in a bare environment and another directory."""
    done = subprocess.run(
        [build.build_dir / "strata", *build.model_flags, *flags],
        capture_output=True,
        text=True,
        env=env or {},
        cwd="/",
        timeout=60,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def test_the_process_prints_what_the_engine_computes(equal: Engine) -> None:
    """The program in the folder gives the stream of the engine, and nothing in between."""
    ids = " ".join(map(str, equal.probe))
    run = start(equal.build, "--tokens", ids, "--max-new", "60")
    assert run.code == 0
    assert run.stream == equal().stream
    assert run.slots == equal().slots


@pytest.mark.parametrize(
    "env",
    [
        {"OPENBLAS_CORETYPE": "Prescott"},
        {"OPENBLAS_CORETYPE": "Haswell"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3 AVX512F AVX2 FMA3"},
        {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
    ],
    ids=lambda env: " ".join(env.values()),
)
def test_the_stream_does_not_depend_on_the_processor(equal: Engine, env: dict[str, str]) -> None:
    """Other kernels of the linear algebra library, or its threads, change no token."""
    ids = " ".join(map(str, equal.probe))
    run = start(equal.build, "--tokens", ids, "--max-new", "60", env=env)
    assert run.stream == equal().stream


def test_paths_may_hold_blanks_quotes_and_other_letters(tmp_path: Path) -> None:
    """Neither the folder's path nor the interpreter's has to be plain."""
    build = write_build(tmp_path / "it's a «café» folder", rig="one")
    run = start(build, "--tokens", "1 2 3")
    assert run.code == 0
    assert len(run.stream) == 16
    assert all(str(tmp_path) in value for value in build.model_flags[1::2] if "/" in value)


def test_an_interpreter_with_a_long_path_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that no first line of a script could hold is started by the shell."""
    folder = tmp_path / ("a long name " * 10) / ("and another " * 10)
    folder.mkdir(parents=True)
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))
    run = start(write_build(tmp_path / "out"), "--tokens", "1 2 3")
    assert run.code == 0


def test_the_folder_may_be_moved(tmp_path: Path) -> None:
    """The programs find their rig beside themselves."""
    build = write_build(tmp_path / "first", rig="two_unequal")
    moved = tmp_path / "moved"
    shutil.copytree(build.build_dir, moved)
    shutil.rmtree(build.build_dir)
    done = subprocess.run(
        [moved / "strata-device", "--list-devices"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("device 0: Emulated EX-10\n")


def test_the_mask_and_the_faults_come_from_the_environment(equal: Engine) -> None:
    """The process obeys the device mask and names a fault that there is not."""
    masked = start(
        equal.build, "--tokens", "1 2", "--auto-roles", env={"CUDA_VISIBLE_DEVICES": "1"}
    )
    assert masked.code == 2
    wrong = start(equal.build, "--tokens", "1 2", env={"HETERO_TEST_REFERENCE_FAULT": "typo"})
    assert wrong.code == 2
    assert wrong.err.startswith("HETERO_TEST_REFERENCE_FAULT: no fault is named 'typo'; there are ")


def test_what_the_environment_says_to_python_is_not_heard(equal: Engine, tmp_path: Path) -> None:
    """A module path of the user's, or a foreign working directory, changes nothing."""
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')\n")
    env = {"PYTHONPATH": os.fspath(tmp_path), "PYTHONHASHSEED": "1"}
    assert start(equal.build, "--tokens", "1 2", env=env).code == 0


def test_writing_again_replaces(tmp_path: Path) -> None:
    """The same folder can be written for another rig and pack."""
    first = write_build(tmp_path)
    (first.build_dir / "launches-1").write_text("3")
    second = write_build(tmp_path, rig="one", pack="native")
    assert second.build_dir == first.build_dir
    assert not (second.build_dir / "launches-1").exists()
    assert Engine(second)("--max-new", "2").says("^strata generate: native pack: ")


def test_the_flags_name_what_was_written(tmp_path: Path) -> None:
    """Every path among the model flags exists, and the vocabulary fits the probe's ids."""
    build = write_build(tmp_path)
    paths = [value for value in build.model_flags if value.startswith("/")]
    assert len(paths) == 4
    assert all(os.path.exists(path) for path in paths)  # noqa: PTH110  they are strings
    assert build.vocab == 4096


def test_an_unknown_rig_is_refused(tmp_path: Path) -> None:
    """Neither a shipped name nor a file."""
    with pytest.raises(FileNotFoundError, match="three_cards"):
        write_build(tmp_path, rig="three_cards")
