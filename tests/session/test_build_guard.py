"""An engine that is replaced while a matrix runs is noticed, and so is what it loads."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hetero_test.errors import HeteroTestError
from hetero_test.rig.host import file_sha256, libraries
from hetero_test.session.build_guard import SameEngine, SameFiles
from hetero_test.values.record import ModelFile
from tests.judge.factories import manifest

LONG_AGO, FAR_AHEAD = "2001-01-01T00:00:00+00:00", "2101-01-01T00:00:00+00:00"


def looker(path: Path, started: str) -> SameEngine:
    """One that looks at a file that was hashed as it is now."""
    made = manifest("1")
    engine = replace(made.engine, sha256=file_sha256(path))
    return SameEngine(path, replace(made, started=started, engine=engine))


@pytest.mark.parametrize("started", [LONG_AGO, FAR_AHEAD])
@pytest.mark.parametrize("in_place", [True, False])
def test_another_engine_is_noticed(tmp_path: Path, started: str, *, in_place: bool) -> None:
    """Of equal size and with its times set back, and also where the clock was set back."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, started)
    same.check()
    times = path.stat()
    other = path if in_place else tmp_path / "other"
    other.write_text("two")
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)

    with pytest.raises(HeteroTestError, match="replaced"):
        same.check()


@pytest.mark.parametrize("started", [LONG_AGO, FAR_AHEAD])
def test_an_engine_that_was_only_touched_is_the_same(tmp_path: Path, started: str) -> None:
    """Times alone, and a copy of the same bytes, are no other engine."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, started)
    for _ in range(2):
        same.check()
        path.touch()
        same.check()
        (tmp_path / "copy").write_text("one")
        (tmp_path / "copy").replace(path)
    same.check()


def test_an_engine_that_is_gone_is_told(tmp_path: Path) -> None:
    """What to do is said too."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, LONG_AGO)
    path.unlink()

    with pytest.raises(HeteroTestError, match="cannot be read") as caught:
        same.check()
    assert "--resume" in (caught.value.hint or "")


def beside(folder: Path, *models: Path) -> SameFiles:
    """One that looks at what an engine in this folder loads, as it is now."""
    made = manifest("1")
    engine = replace(made.engine, libraries=libraries(folder / "engine"))
    named = tuple(ModelFile(flag="-m", path=str(path)) for path in models)
    return SameFiles(replace(made, engine=engine, model=named))


def rewrite(path: Path, content: bytes) -> None:
    """Write a file anew in another place and move it to its own."""
    beside_it = path.with_name("new")
    beside_it.write_bytes(content)
    beside_it.replace(path)


@pytest.mark.parametrize("size", [4, 2**20, 200 * 2**20])
@pytest.mark.parametrize("name", ["libllama.so", "m.gguf"])
def test_contents_decide_and_not_times(tmp_path: Path, name: str, size: int) -> None:
    """A file that each run rewrites with equal bytes is the same; one other byte is another file.

    Large files are looked at in samples, so that the other byte stands at their end or begin.
    """
    path = tmp_path / name
    content = b"GGUF" + bytes(size - 4)
    path.write_bytes(content)
    same = beside(tmp_path, tmp_path / "m.gguf")
    for _ in range(3):
        same.check()
        rewrite(path, content)
        same.check()
        path.touch()
    same.check()
    times = path.stat()
    rewrite(path, content[:-1] + b"x")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    with pytest.raises(HeteroTestError, match=f"{name}.*changed or replaced"):
        same.check()


@pytest.mark.parametrize("name", ["libllama.so", "libggml-cuda.so.0.9.4"])
@pytest.mark.parametrize("how", ["in place", "another", "gone"])
def test_another_library_is_another_engine(tmp_path: Path, name: str, how: str) -> None:
    """Most of an engine may be in the libraries beside it, while its binary stays as it is."""
    library = tmp_path / name
    library.write_bytes(b"one")
    same = beside(tmp_path)
    same.check()
    if how == "in place":
        library.write_bytes(b"other")
    elif how == "gone":
        library.unlink()
    else:
        (tmp_path / "new").write_bytes(b"two")
        (tmp_path / "new").replace(library)

    with pytest.raises(HeteroTestError, match=f"{name}.*changed or replaced"):
        same.check()


def test_a_library_behind_a_link_is_looked_at(tmp_path: Path) -> None:
    """The build folder may hold no more than a link to the engine."""
    (tmp_path / "real").mkdir()
    library = tmp_path / "real" / "libllama.so"
    library.write_bytes(b"one")
    (tmp_path / "real" / "engine").touch()
    (tmp_path / "engine").symlink_to(tmp_path / "real" / "engine")
    same = beside(tmp_path)
    library.write_bytes(b"other")

    with pytest.raises(HeteroTestError, match="libllama"):
        same.check()


def test_another_model_is_noticed_and_other_files_may_change(tmp_path: Path) -> None:
    """Weights are only read; what else a flag names may be the engine's own to write to."""
    model, cache = tmp_path / "m.gguf", tmp_path / "lookup.bin"
    model.write_bytes(b"GGUF one")
    cache.write_bytes(b"one")
    same = beside(tmp_path, model, cache, tmp_path, tmp_path / "missing")
    same.check()
    cache.write_bytes(b"other")
    (tmp_path / "libfresh.so").write_bytes(b"built beside it, and not loaded so far")
    same.check()
    model.write_bytes(b"GGUF other")

    with pytest.raises(HeteroTestError, match=r"m\.gguf.*changed or replaced"):
        same.check()
