"""The rig file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from hetero_test.errors import ExitCode, MatrixError, UsageError
from hetero_test.rig.facts import (
    SYSTEM_POOL,
    DeviceClass,
    DeviceFacts,
    EffectiveBandwidth,
    PairFacts,
    RigFacts,
    Workload,
)
from hetero_test.rig.facts_file import dump_rig, load_rig
from hetero_test.rig.sourced import Origin, Sourced, measured, specified
from tests.rig.strategies import rigs

if TYPE_CHECKING:
    from pathlib import Path


def rig_file(folder: Path, text: str) -> Path:
    """A rig file with this text."""
    path = folder / "rig.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaints_of(folder: Path, text: str) -> tuple[str, ...]:
    """What is said about the text, without the folder's name."""
    path = rig_file(folder, text)
    with pytest.raises(MatrixError) as caught:
        load_rig(path)
    return tuple(line.removeprefix(f"{folder}/") for line in caught.value.complaints)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[*HealthCheck]
)  # the strategy builds whole rigs, which is slow to draw and not to read
@given(rig=rigs())
def test_a_rig_survives_its_file(tmp_path_factory: pytest.TempPathFactory, rig: RigFacts) -> None:
    """Whatever a rig holds, its file reads back to an equal value, sources and all."""
    path = rig_file(tmp_path_factory.mktemp("rig"), dump_rig(rig))
    assert load_rig(path) == rig


def test_a_bare_value_is_specified_by_its_line(tmp_path: Path) -> None:
    """A value without a source gets the file and line it stands in."""
    path = rig_file(tmp_path, '[[devices]]\nid = "CPU"\ndevice_class = "apu"\nfree_bytes = 7\n')
    device = load_rig(path).devices[0]
    assert device.free_bytes == specified(7, f"{path}:4")
    assert device.device_class == specified(DeviceClass.APU, f"{path}:3")


def test_a_bare_value_of_a_measured_key_is_measured(tmp_path: Path) -> None:
    """A key with ``measured`` in its name makes a measured fact."""
    text = '[[devices]]\nid = "A"\ndevice_class = "apu"\nbandwidth_measured_gb_s = 212\n'
    fact = load_rig(rig_file(tmp_path, text)).devices[0].bandwidth_measured_gb_s
    assert fact is not None
    assert (fact.value, fact.origin) == (212.0, Origin.MEASURED)


def test_a_missing_fact_is_none(tmp_path: Path) -> None:
    """What the file does not say is unknown, and no number replaces it."""
    device = load_rig(rig_file(tmp_path, '[[devices]]\nid = "A"\ndevice_class = "apu"\n')).devices[
        0
    ]
    assert device.memory_bytes is None
    assert device.link is None
    assert device.held_by is None
    assert device.own_pool is None


def test_nobody_holds_it_is_not_unknown(tmp_path: Path) -> None:
    """An empty list of holders survives as empty, not as unknown."""
    device = DeviceFacts(id="A", device_class=measured(DeviceClass.APU, "x"), held_by=())
    path = rig_file(tmp_path, dump_rig(RigFacts(devices=(device,))))
    assert load_rig(path).devices[0].held_by == ()


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    """A wrong value, a wrong type and a misspelt key are three complaints in file order."""
    text = """\
[[devices]]
id = "A"
device_class = "gpu"
memory_bytes = "24 GB"
bandwith_specified_gb_s = 936
"""
    said = complaints_of(tmp_path, text)
    assert [line.split(": ")[0] for line in said] == ["rig.toml:3", "rig.toml:4", "rig.toml:5"]
    assert "devices[0].device_class" in said[0]
    assert "discrete_gpu" in said[0]
    assert "integer" in said[1]
    assert said[2].endswith('unknown key, did you mean "bandwidth_specified_gb_s"?')


def test_a_misspelt_key_inside_a_fact_is_told(tmp_path: Path) -> None:
    """The suggestion knows the keys of a fact as well."""
    text = """\
[[devices]]
id = "A"
device_class = { value = "apu", orgin = "measured", source = "x" }
"""
    said = complaints_of(tmp_path, text)
    assert any('did you mean "origin"?' in line and ":3:" in line for line in said)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("= 3\n", 1, "TOML"),
        ('[[devices]]\nid = "A"\n', 1, "missing"),
        ("[cpu]\ncores = 3\n", 1, "missing"),
        ('devices = [{ id = 3, device_class = "apu" }]\n', 1, "string"),
        ('[[devices]]\nid = "A"\ndevice_class = "apu"\nfree_bytes = -1\n', 4, "negative"),
        ('[[devices]]\nid="A"\ndevice_class="apu"\nbandwidth_measured_gb_s=0\n', 4, "leave it out"),
        ('[[devices]]\nid="A"\ndevice_class="apu"\nbandwidth_measured_gb_s=nan\n', 4, "finite"),
        (
            '[[devices]]\nid="A"\ndevice_class="apu"\n[[devices]]\nid="A"\ndevice_class="apu"\n',
            5,
            "a second device 'A'",
        ),
        ('devices = []\n[[links]]\na = "A"\nb = "B"\n', 3, "no device 'A'"),
        (
            (
                '[[devices]]\nid="A"\ndevice_class="apu"\n'
                'free_bytes = { value = 5, origin = "measured", source = "x", low = 6, high = 7 }\n'
            ),
            4,
            "leaves out 5",
        ),
    ],
)
def test_what_does_not_hold_together_is_refused(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    """Each mistake is reported with its own line."""
    said = complaints_of(tmp_path, text)
    assert any(entry.startswith(f"rig.toml:{line}:") and what in entry for entry in said), said


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """The message names the file, and the exit code is that of a wrong command line."""
    with pytest.raises(UsageError, match="no such file") as caught:
        load_rig(tmp_path / "none.toml")
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_folder_and_a_pipe_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Only a regular file is read; a pipe without a writer would hang."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "pipe"):
        with pytest.raises(UsageError, match="no regular file"):
            load_rig(tmp_path / name)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    """A file that cannot be a rig by its size is not read at all."""
    path = tmp_path / "rig.toml"
    with path.open("wb") as stream:
        stream.truncate(2**33)
    with pytest.raises(UsageError, match="larger than any rig file"):
        load_rig(path)


def test_other_encodings_and_deep_nesting_are_complaints(tmp_path: Path) -> None:
    """Neither bytes that are not UTF-8 nor a thousand brackets end in a traceback."""
    path = tmp_path / "rig.toml"
    path.write_bytes(b"[cpu]\nname = '\xff'\n")
    with pytest.raises(MatrixError, match=":2:"):
        load_rig(path)
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(MatrixError, match="not TOML"):
        load_rig(path)


def test_the_fitted_bandwidth_prefers_its_own_quantization() -> None:
    """A fit of the asked quantization comes before one of any; without a fit, None."""
    any_quant = EffectiveBandwidth(workload=Workload.MOE, gb_s=measured(100.0, "run 1"))
    mxfp4 = EffectiveBandwidth(
        workload=Workload.MOE, gb_s=measured(168.0, "run 2"), quantization="MXFP4"
    )
    device = DeviceFacts(
        id="A",
        device_class=measured(DeviceClass.APU, "x"),
        bandwidth_effective=(any_quant, mxfp4),
    )
    assert device.effective_gb_s(Workload.MOE, "MXFP4") == mxfp4.gb_s
    assert device.effective_gb_s(Workload.MOE, "Q4_K") == any_quant.gb_s
    assert device.effective_gb_s(Workload.MOE) == any_quant.gb_s
    assert device.effective_gb_s(Workload.DENSE) is None


def test_devices_and_pairs_are_found_by_name() -> None:
    """A pair is found in either order; an unknown one is None."""
    apu = measured(DeviceClass.APU, "x")
    rig = RigFacts(
        devices=(
            DeviceFacts(id="A", device_class=apu, pool=measured(SYSTEM_POOL, "x")),
            DeviceFacts(id="B", device_class=apu, pool=measured("B", "x")),
        ),
        links=(PairFacts(a="A", b="B", sync_us=measured(13.0, "log")),),
    )
    assert rig.pair("B", "A") == rig.links[0]
    assert rig.pair("A", "C") is None
    assert rig.device("C") is None
    assert rig.device("A") is rig.devices[0]
    assert [device.own_pool for device in rig.devices] == [False, True]


def test_an_interval_is_written_beside_its_value() -> None:
    """The file shows value, origin, source and interval on one line."""
    fact = Sourced(value=14.0, origin=Origin.MEASURED, source="a log", low=13.0, high=16.0)
    line = (
        'sync_us = { value = 14.0, origin = "measured", source = "a log", low = 13.0, high = 16.0 }'
    )
    assert line in dump_rig(RigFacts(devices=(), sync_us=fact)).splitlines()
