"""Nominal memory bandwidth and its table."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from hetero_test.rig.bandwidth import (
    GIB,
    gpu_bandwidth,
    module_bandwidth,
    named_bandwidth,
    server_channels,
    soldered_bandwidth,
)
from hetero_test.rig.sourced import Origin

TABLE: dict[str, Any] = tomllib.loads(
    resources.files("hetero_test.rig").joinpath("data/bandwidth.toml").read_text("utf-8")
)


@pytest.mark.parametrize("row", TABLE["gpu"], ids=lambda row: str(row["name"]))
def test_bus_times_speed_is_the_printed_bandwidth(row: dict[str, Any]) -> None:
    """Each card's GB/s is its bus in bytes times the transfers a second, as printed."""
    assert row["bus_bits"] / 8 * row["gt_s"] == pytest.approx(row["gb_s"], rel=0.025)


@pytest.mark.parametrize("row", TABLE["soldered"], ids=lambda row: str(row["name"]))
def test_soldered_memory_is_bus_times_speed(row: dict[str, Any]) -> None:
    """The same for chips with fixed memory."""
    assert row["bus_bits"] / 8 * row["mt_s"] / 1000 == pytest.approx(row["gb_s"], rel=0.01)


def test_every_row_has_a_source_and_is_alone() -> None:
    """No row without a source that is written out, and no two rows for one card."""
    rows = [*TABLE["gpu"], *TABLE["soldered"], *TABLE["server"]]
    assert {row["source"] for row in rows} == set(TABLE["sources"])
    assert all("https://" in source for source in TABLE["sources"].values())
    keys = [(row["name"], row.get("memory_gib")) for row in TABLE["gpu"]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("name", "gib", "gb_s"),
    [
        ("NVIDIA GeForce RTX 3090", 24, 936),
        ("NVIDIA GeForce RTX 5090", 32, 1792),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 1792),
        ("NVIDIA A100-SXM4-80GB", 80, 2039),
        ("Tesla P40", 24, 346),
        ("NVIDIA GeForce RTX 3080", 10, 760),
        ("NVIDIA GeForce RTX 3080", 12, 912),
        ("NVIDIA GeForce RTX 3060 Ti", 8, 448),
        ("AMD Radeon RX 7900 XTX", 24, 960),
        ("Radeon RX 570 Series", 4, 224),
        ("Intel(R) Arc(TM) B580 Graphics", 12, 456),
        ("AMD Instinct MI210", 64, 1638.4),
    ],
)
def test_cards_are_found_by_their_whole_name(name: str, gib: int, gb_s: float) -> None:
    """Maker, marks and tail are dropped; cards of one name differ in memory."""
    fact = gpu_bandwidth(name, int(gib * GIB * 0.99))
    assert fact is not None
    assert fact.value == gb_s
    assert fact.origin is Origin.SPECIFIED
    assert "bandwidth table" in fact.source


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("NVIDIA GeForce RTX 3080 Laptop GPU", 16),
        ("NVIDIA GeForce RTX 3080", 20),
        ("NVIDIA GeForce RTX 3090x", 24),
        ("Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", 24),
        ("AMD Radeon Graphics", 2),
        ("", 1),
    ],
)
def test_a_card_that_is_not_in_the_table_is_unknown(name: str, gib: int) -> None:
    """A laptop's card, another size, half a name: nothing is guessed."""
    assert gpu_bandwidth(name, gib * GIB) is None


@pytest.mark.parametrize(
    ("name", "gb_s"),
    [
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", 256),
        ("Apple M4", 120),
        ("Apple M3 Ultra", 819.2),
        ("Apple M4 Max", None),
        ("Apple M30", None),
        ("AMD Ryzen 9 7950X 16-Core Processor", None),
    ],
)
def test_soldered_memory_is_found_by_the_processor(name: str, gb_s: float | None) -> None:
    """A longer name is another chip; a chip that comes in two widths is unknown."""
    fact = soldered_bandwidth(name)
    assert (fact.value if fact else None) == gb_s


@pytest.mark.parametrize(
    ("channels", "mt_s", "gb_s"),
    [(2, 4800, 76.8), (2, 3200, 51.2), (8, 3200, 204.8), (12, 4800, 460.8), (4, 8000, 256.0)],
)
def test_modules_carry_8_bytes_a_transfer_and_channel(
    channels: int, mt_s: int, gb_s: float
) -> None:
    """Dual channel DDR5-4800 is 76.8 GB/s, twelve channels are 460.8."""
    assert module_bandwidth(channels, mt_s) == pytest.approx(gb_s)


@pytest.mark.parametrize(
    ("name", "channels", "mt_s"),
    [
        ("AMD EPYC 7551P 32-Core Processor", 8, 2666),
        ("AMD EPYC 7F52 16-Core Processor", 8, 3200),
        ("AMD EPYC 7763 64-Core Processor", 8, 3200),
        ("AMD EPYC 9654 96-Core Processor", 12, 4800),
        ("AMD EPYC 9575F 64-Core Processor", 12, 6000),
        ("AMD Ryzen Threadripper PRO 7965WX 24-Cores", 8, 5200),
        ("AMD Ryzen Threadripper 7970X 32-Cores", 4, 5200),
        ("Intel(R) Xeon(R) Gold 6454S", 8, 4800),
        ("Intel(R) Xeon(R) Platinum 8592+", 8, 5600),
        ("Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 4, 2400),
    ],
)
def test_servers_are_known_by_their_names(name: str, channels: int, mt_s: int) -> None:
    """Channels a socket and the fastest speed with all of them filled."""
    found = server_channels(name)
    assert found is not None
    assert found[:2] == (channels, mt_s)


def test_other_processors_are_no_servers() -> None:
    """A desktop's processor does not say what memory is fitted."""
    assert server_channels("AMD Ryzen 9 7950X 16-Core Processor") is None
    assert server_channels("Intel(R) Xeon(R) Processor") is None


def test_patterns_of_servers_compile() -> None:
    """Every pattern of the table is a regular expression."""
    assert all(re.compile(row["pattern"]) for row in TABLE["server"])


@pytest.mark.parametrize(
    ("name", "gib", "gb_s"),
    [
        ("RTX 3090", None, 936),
        ("GeForce RTX 3090", 24, 936),
        ("rtx 3060", 12, 360),
        ("RTX 3060", None, 360),
        ("RTX 3080", None, 760),
        ("RTX 3080", 12, 912),
        ("RX 7900 XTX", None, 960),
        ("Arc B580", None, 456),
        ("RTX 3060", 8, None),
        ("RTX 3080 Laptop GPU", None, None),
        ("RTX 6000", None, None),
        ("", None, None),
    ],
)
def test_people_may_leave_out_brand_and_memory(
    name: str, gib: int | None, gb_s: float | None
) -> None:
    """The whole name has to match; of two cards of one name the smaller is taken."""
    found = named_bandwidth(name, None if gib is None else gib * GIB)
    assert (None if found is None else found.value) == gb_s
    if found is not None:
        assert found.origin is Origin.SPECIFIED
        assert "https://" in found.source


@pytest.mark.parametrize("row", TABLE["gpu"], ids=lambda row: str(row["name"]))
def test_no_two_brands_share_a_name(row: dict[str, Any]) -> None:
    """So a name without its brand is one card's."""
    short = row["name"].split(" ", 1)[-1]
    gib = row.get("memory_gib")
    found = named_bandwidth(row["name"], None if gib is None else gib * GIB)
    assert found is not None
    assert found.value == row["gb_s"]
    if row["name"].startswith(("GeForce", "Radeon", "Arc")):
        assert named_bandwidth(short, None if gib is None else gib * GIB) == found
