"""Builds of the scripted engine: what a rig does is written down, and then played."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FLAGS = (
    *("--pack", "--tokens-file", "--max-new", "--spec", "--mtp", "--expert-cache"),
    *("--expert-profile", "--main-device", "--draft-device", "--auto-roles"),
    *("--draft-prefill-parallel", "--draft-chain-batch", "--adapt-every", "--suffix-draft"),
    *("--pcie-frac",),
)
MODEL_FLAGS = (
    "--pack",
    "/models/pack",
    "--spec",
    "4",
    "--mtp",
    "/models/mtp",
    "--expert-profile",
    "p",
)
Rule = Mapping[str, Any]


def when(*flags: str, without: Sequence[str] = (), nth: Sequence[int] = (), **do: Any) -> Rule:
    """A rule: ``do`` holds for launches with these flags, and only the ``nth`` of them."""
    condition: dict[str, Any] = {"flags": list(flags), "without": list(without)}
    if nth:
        condition["nth"] = list(nth)
    return {"when": condition, "do": do}


BASELINE = ("--main-device", "--auto-roles", "--draft-chain-batch")
"""Flags that only variants have: ``without=BASELINE`` is the baseline."""


def always(**do: Any) -> Rule:
    """A rule for every launch."""
    return when(**do)


def write_build(
    folder: Path,
    *rules: Rule,
    devices: int | None = 2,
    device_text: str | None = None,
    known: Sequence[str] = FLAGS,
) -> Path:
    """A build folder with the scripted ``strata`` and ``strata-device`` in it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("program.py"), folder / "program.py")
    (folder / "scenario.json").write_text(json.dumps({"help": list(known), "rules": list(rules)}))
    python = shlex.quote(sys.executable)
    script(
        folder / "strata",
        f'exec {python} -I -S {shlex.quote(str(folder.absolute() / "program.py"))} "$@"\n',
    )
    if device_text is None and devices is not None:
        device_text = "".join(
            f"device {n}: NVIDIA GeForce GTX 1080 Ti\n  compute capability 6.1, 10.9 GiB\n"
            for n in range(devices)
        )
    if device_text is not None:
        (folder / "devices.txt").write_text(device_text or "(no GPU device)\n")
        script(
            folder / "strata-device", f"cat {shlex.quote(str(folder.absolute() / 'devices.txt'))}\n"
        )
    return folder


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return path


def launches(folder: Path) -> list[list[str]]:
    """The argument vector of every launch, in order."""
    log = folder / "argv.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
