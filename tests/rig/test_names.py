"""Devices of which a rig file has only the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.rig.bandwidth import with_named_bandwidths
from hetero_test.rig.facts_file import load_rig

if TYPE_CHECKING:
    from pathlib import Path

RIG = """
[[devices]]
id = "CUDA0"
name = "NVIDIA GeForce RTX 3090"
device_class = "discrete_gpu"

[[devices]]
id = "CUDA1"
name = "RTX 3060"
device_class = "discrete_gpu"
memory_bytes = 12884901888

[[devices]]
id = "CUDA2"
name = "RTX 3060"
device_class = "discrete_gpu"
bandwidth_specified_gb_s = 240.0

[[devices]]
id = "CUDA3"
name = "Card of tomorrow"
device_class = "discrete_gpu"

[[devices]]
id = "ROCm0"
name = "Radeon 8060S"
device_class = "apu"

[[devices]]
id = "CPU"
device_class = "apu"

[cpu]
name = "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"
"""


def test_what_is_only_named_is_looked_up_and_what_is_told_is_left(tmp_path: Path) -> None:
    """Their source is the table's; what the table lacks stays unknown."""
    path = tmp_path / "rig.toml"
    path.write_text(RIG, encoding="utf-8")
    devices = with_named_bandwidths(load_rig(path)).devices
    told = {d.id: d.bandwidth_specified_gb_s for d in devices}
    assert {name: fact and fact.value for name, fact in told.items()} == {
        "CUDA0": 936.0,
        "CUDA1": 360.0,
        "CUDA2": 240.0,
        "CUDA3": None,
        "ROCm0": 256.0,
        "CPU": 256.0,
    }
    assert told["CUDA0"] is not None
    assert told["CUDA0"].source.startswith("bandwidth table, GeForce RTX 3090")
    assert told["CUDA2"] is not None
    assert told["CUDA2"].source.endswith("rig.toml:17")
