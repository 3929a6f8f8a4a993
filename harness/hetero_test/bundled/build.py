"""A build folder and model folders of the bundled engine, as a user would have them."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from hetero_test.bundled.arith import Arithmetic
from hetero_test.bundled.cache import ExpertPlaces
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.model import Kernels, Model
from hetero_test.bundled.pack import (
    DRAFTER_FILE,
    PACK_FILE,
    PROFILE_HEAD,
    Dimensions,
    Layout,
    Pack,
    Pair,
)
from hetero_test.bundled.rig import rig_file
from hetero_test.bundled.weights import make_weights
from hetero_test.bundled.work import Work

MODEL_SEED = 2
_RIG_FILE = "rig.toml"
_LAUNCHER = "reference.py"
_PROFILE_TOKENS = 256

_SCRIPT = """\
#!/bin/sh
# The bundled engine of hetero-test. A shell starts it because the path of an interpreter
# may hold blanks, or be longer than a script's first line may be.
case $0 in
*/*) here=${{0%/*}} ;;
*) here=. ;;
esac
exec {python} -I -S "$here/{launcher}" {program} "$@"
"""

# Without site (-S) the interpreter starts in half the time; the paths it would find are named.
_LAUNCH = '''\
"""Starts the program that is named first; see hetero_test.bundled."""

import os
import sys

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # rows are small; threads would only cost time
sys.path += {paths!r}

from pathlib import Path  # noqa: E402

program = sys.argv.pop(1)
rig = Path(__file__).with_name({rig!r})
if program == "strata":
    from hetero_test.bundled.program import entry
else:
    from hetero_test.bundled.device_tool import entry
entry(rig)
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoBuild:
    """What ``hetero-test`` needs to run the bundled engine.

    Args:
        build_dir: holds ``strata`` and ``strata-device``.
        model_flags: go behind ``--``.
        vocab: for the generator of prompts; the model knows the ids below this number.
    """

    build_dir: Path
    model_flags: tuple[str, ...]
    vocab: int


def write_build(
    dest: Path,
    *,
    rig: str | Path = "two_equal",
    pack: Literal["canonical", "native"] = "canonical",
) -> DemoBuild:
    """Write ``dest/build`` and ``dest/models``; existing files are replaced.

    Args:
        dest: a folder, which need not exist; its path may hold blanks.
        rig: a shipped rig's name (``two_equal``, ``two_unequal``, ``one``), or a TOML file.
        pack: how the model's experts are kept.

    Raises:
        FileNotFoundError: there is no such rig.
        OSError: the folders cannot be written.
    """
    dest = dest.absolute()
    build_dir = _write_programs(dest / "build", rig_file(rig))
    model = demo_pack(Layout(pack))
    return DemoBuild(
        build_dir=build_dir,
        model_flags=_write_models(dest / "models", model),
        vocab=model.shape.vocab,
    )


def demo_pack(layout: Layout) -> Pack:
    """The model of the demo.

    Its sizes are chosen for the shipped rigs: beside the drafter the automatic cache has
    44 of 64 slots on an 8 GiB card, with the drafter elsewhere 50.
    """
    by_layer = {Layout.CANONICAL: (116, 116, 116, 116), Layout.NATIVE: (116, 92, 104, 88)}
    return Pack(
        layout=layout,
        seed=MODEL_SEED,
        shape=Dimensions(),
        weights_mib=1000,
        session_mib=268,
        kv_mib_per_1024=32,
        expert_mib=by_layer[layout],
        eos_ids=(2,),
    )


def _write_programs(folder: Path, rig: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("launches-*"):
        stale.unlink()
    shutil.copyfile(rig, folder / _RIG_FILE)
    launch = _LAUNCH.format(paths=_import_paths(), rig=_RIG_FILE)
    (folder / _LAUNCHER).write_text(launch, encoding="utf-8")
    for program in ("strata", "strata-device"):
        script = folder / program
        script.write_text(
            _SCRIPT.format(python=shlex.quote(sys.executable), launcher=_LAUNCHER, program=program),
            encoding="utf-8",
            errors="surrogateescape",
        )
        script.chmod(0o755)
    return folder


def _import_paths() -> list[str]:
    """Where this package and numpy are."""
    found = (Path(__file__).parents[2], Path(np.__file__).parent.parent)
    return [os.fspath(path) for path in dict.fromkeys(found)]


def _write_models(folder: Path, pack: Pack) -> tuple[str, ...]:
    """Write pack, shard, drafter and profile; return the flags that name them."""
    places = {name: folder / name for name in ("pack", "mtp")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    _write(places["pack"] / PACK_FILE, _pack_text(pack))
    _write(places["mtp"] / DRAFTER_FILE, _DRAFTER_TEXT)
    for name in ("model-00001-of-00001.gguf", "ple.gguf"):
        _write(folder / name, "A stand-in: the reference engine draws its weights from a seed.\n")
    ranked = rank_pairs(pack)
    lines = [PROFILE_HEAD, *(f"{layer} {expert}" for layer, expert in ranked)]
    _write(folder / "profile.txt", "\n".join(lines) + "\n")
    return (
        *("--pack", os.fspath(places["pack"])),
        *("--native", os.fspath(folder / "model-00001-of-00001.gguf")),
        *("--prefill", "auto"),
        *("--spec", "4"),
        *("--mtp", os.fspath(places["mtp"])),
        *("--expert-profile", os.fspath(folder / "profile.txt")),
        *("--adapt-every", "0"),
    )


@cache
def rank_pairs(pack: Pack) -> tuple[Pair, ...]:
    """The (layer, expert) pairs, most used first, as counted on tokens drawn at random."""
    fine = Arithmetic(12)
    model = Model(
        make_weights(pack.shape, pack.seed),
        pack.shape,
        Kernels(main=fine, places=(fine, fine)),
        ExpertPlaces(pack, [()], pcie_share=0),
        Work(),
    )
    drawn = random.Random(pack.seed)
    ids = [drawn.randrange(pack.shape.vocab) for _ in range(_PROFILE_TOKENS)]
    _, routes = model.read(ids, model.memory(len(ids), KvFormat.FP16), last_only=True)
    used = {
        (layer, expert): int(np.count_nonzero(chosen == expert))
        for layer, chosen in enumerate(routes)
        for expert in range(pack.shape.experts)
    }
    return tuple(sorted(used, key=lambda pair: (-used[pair], pair)))


_DRAFTER_TEXT = """\
# What the drafter takes of the emulated device that it is put on.
experts_mib = 400
dense_mib = 110
kv_mib = 20
head_mib = 160
"""


def _pack_text(pack: Pack) -> str:
    return f"""\
# A pack of the reference engine: the weights are drawn from the seed.
expert_layout = "{pack.layout.value}"
seed = {pack.seed}
eos_ids = {list(pack.eos_ids)}

[mib]  # what each part takes of an emulated device
weights = {pack.weights_mib}
session = {pack.session_mib}
kv_per_1024_positions = {pack.kv_mib_per_1024}
expert_by_layer = {list(pack.expert_mib)}
"""


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
