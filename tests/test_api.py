"""What a caller from Python can rely on: the README's example, and the names in ``__all__``."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hetero_test
from hetero_test.bundled.build import write_build
from tests.test_readme import ROOT, block

pytestmark = pytest.mark.process


def python(code: str, cwd: Path) -> str:
    """What a program prints that has the package on its path."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "harness")},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def test_the_example_in_the_readme_runs(tmp_path: Path) -> None:
    """As it stands, in an empty folder: each comparison is told, and the report follows."""
    told = python(block("api example"), tmp_path)
    assert "1 repeat PASS" in told
    assert "1f anchor PASS equal over 60 tokens" in told
    assert "## ✅ PASS" in told
    # The report says how to ask for the same on a command line.
    assert "hetero-test --build-dir '<build>' --out out --only 1 --vocab 4096 -- --pack" in told


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    """Importing the package costs nothing, so that ``--help`` answers at once."""
    code = (
        "import sys, hetero_test; print([n for n in sys.modules if n.startswith('hetero_test.')])"
    )
    assert python(code, tmp_path) == "[]\n"


def test_each_public_name_is_there_and_says_what_it_is() -> None:
    """Everything in ``__all__`` has a docstring; what is not in the package is an error."""
    for name in hetero_test.__all__:
        assert getattr(hetero_test, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'run_matrices'"):
        getattr(hetero_test, "run_matri" + "ces")


def demo_options(folder: Path) -> hetero_test.RunOptions:
    """Two variants of the bundled engine, once each."""
    made = write_build(folder / "engine")
    return hetero_test.RunOptions(
        build_dir=made.build_dir,
        model_flags=made.model_flags,
        vocab=made.vocab,
        out=folder / "out",
        only=("2",),
        max_new=8,
        repeats=1,
    )


def test_a_matrix_belongs_to_the_main_thread(tmp_path: Path) -> None:
    """An engine dies with the thread that started it: another thread is refused at once."""
    options = demo_options(tmp_path)
    with ThreadPoolExecutor(1) as threads, pytest.raises(RuntimeError, match="main thread"):
        threads.submit(hetero_test.run_matrix, options).result(timeout=60)
    assert not options.out.exists()


def test_a_record_is_the_same_as_run_and_as_loaded(tmp_path: Path) -> None:
    """Nothing of it is lost on the way through the run directory."""
    options = demo_options(tmp_path)
    record, judgment = hetero_test.run_matrix(options)
    assert hetero_test.load_run(options.out) == record
    assert hetero_test.judge_run(record) == judgment


def test_a_report_hides_names_unless_told_otherwise(tmp_path: Path) -> None:
    """The folder of the models is replaced, and stands there where that was asked for."""
    options = demo_options(tmp_path)
    record, judgment = hetero_test.run_matrix(options)
    hidden = hetero_test.render_run(record, judgment, options.out)
    shown = hetero_test.render_run(record, judgment, options.out, redact=False)
    assert str(tmp_path) not in hidden
    assert str(tmp_path) in shown
