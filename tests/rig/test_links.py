"""PCIe links: speeds, ports, paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig.facts import LinkState
from hetero_test.rig.links import (
    GENERATIONS,
    LinkSpeed,
    Port,
    Topology,
    best_of,
    full_address,
    link_facts,
    link_gb_s,
    link_speed,
    mark_tunnels,
    narrowest,
    parse_lspci,
    parse_speed,
)
from hetero_test.rig.sourced import Origin
from tests.rig.machines import Tools, pci

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"


def port(lines: str) -> Port:
    """What one device's lines say."""
    return parse_lspci(DEVICE + lines)["0000:01:00.0"]


def speeds(gen: int, width: int) -> LinkSpeed:
    """A speed."""
    return LinkSpeed(gen=gen, width=width)


@pytest.mark.parametrize(
    ("gen", "gb_s"), [(1, 0.25), (2, 0.50), (3, 0.985), (4, 1.969), (5, 3.938), (6, 7.56)]
)
def test_one_lane_carries_what_its_encoding_leaves(gen: int, gb_s: float) -> None:
    """GB/s of one lane in one direction."""
    assert link_gb_s(gen, 1) == pytest.approx(gb_s, rel=7e-4)


@pytest.mark.parametrize(
    ("gen", "width", "gb_s"),
    [
        (1, 4, 1.00),
        (2, 4, 2.00),
        (3, 4, 3.94),
        (4, 4, 7.88),
        (5, 4, 15.75),
        (1, 16, 4.0),
        (2, 16, 8.0),
        (3, 16, 15.75),
        (4, 16, 31.51),
        (5, 16, 63.0),
    ],
)
def test_x4_and_x16_are_as_printed(gen: int, width: int, gb_s: float) -> None:
    """The usual table, to its printed digits."""
    digits = len(str(gb_s).split(".")[1])
    assert round(link_gb_s(gen, width), digits) == gb_s


def test_a_hop_of_10_kib_takes_1_3_us_at_gen4_x4() -> None:
    """10 KiB over 7.88 GB/s."""
    assert round(10 * 1024 / (link_gb_s(4, 4) * 1e9) * 1e6, 1) == 1.3


@pytest.mark.parametrize(
    ("line", "capable", "now"),
    [
        (
            "LnkCap: Port #0, Speed 16GT/s, Width x16, ASPM L0s L1, "
            "Exit Latency L0s <512ns, L1 <4us",
            (4, 16),
            None,
        ),
        ("LnkSta: Speed 2.5GT/s (downgraded), Width x4 (downgraded)", None, (1, 4)),
        (
            "LnkCap: Port #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <16us",
            (4, 16),
            None,
        ),
        ("LnkSta: Speed 2.5GT/s (downgraded), Width x16 (ok)", None, (1, 16)),
        ("LnkCap: Port #2, Speed 16GT/s, Width x4, ASPM L1, Exit Latency L1 <64us", (4, 4), None),
        ("LnkSta: Speed 8GT/s (downgraded), Width x4", None, (3, 4)),
        ("LnkSta: Speed 5GT/s (downgraded), Width x1 (downgraded)", None, (2, 1)),
        ("LnkSta: Speed 16GT/s (ok), Width x16 (ok)", None, (4, 16)),
        ("LnkSta: Speed 16GT/s, Width x8 (downgraded)", None, (4, 8)),
        ("LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported", (5, 16), None),
        (
            "LnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete- EqualizationPhase1-",
            None,
            None,
        ),
        ("LnkCap2: Supported Link Speeds: 2.5-16GT/s, Crosslink- Retimer+", None, None),
        ("LnkCtl2: Target Link Speed: 16GT/s, EnterCompliance- SpeedDis-", None, None),
        ("LnkCtl: ASPM Disabled; RCB 64 bytes, Disabled- CommClk+", None, None),
        ("Capabilities: <access denied>", None, None),
        ("LnkSta: Speed unknown, Width x0", None, None),
        ("LnkSta: Speed 2.5GT/s, Width x0", None, None),
    ],
)
def test_lines_of_lspci_are_read(
    line: str, capable: tuple[int, int] | None, now: tuple[int, int] | None
) -> None:
    """A suffix may follow speed, width, both or neither; other Lnk lines say nothing."""
    found = port(f"\t\t{line}\n")
    assert found.capable == (speeds(*capable) if capable else None)
    assert found.now == (speeds(*now) if now else None)


def test_a_whole_device_is_read() -> None:
    """Name, capability and state come from the lines of one device and not of the next."""
    text = DEVICE + (
        "\tCapabilities: [78] Express (v2) Legacy Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L0s L1\n"
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x4 (downgraded)\n"
        "\t\tLnkCap2: Supported Link Speeds: 2.5-16GT/s\n"
        "02:00.0 Non-Volatile memory controller: Some NVMe\n"
        "\t\tLnkSta:\tSpeed 8GT/s, Width x4\n"
    )
    ports = parse_lspci(text)
    card = ports["0000:01:00.0"]
    assert "GeForce RTX 3090" in card.name
    assert (card.capable, card.now) == (speeds(4, 16), speeds(1, 4))
    assert ports["0000:02:00.0"].now == speeds(3, 4)


@given(st.text(max_size=300))
def test_any_text_is_read_or_passed_over(text: str) -> None:
    """The output of lspci may be malformed in any way."""
    for found in parse_lspci(text).values():
        assert found.now is None or found.now.gb_s > 0
    parse_lspci(DEVICE + "\tLnkSta: " + text)


@pytest.mark.parametrize(
    ("text", "gen"),
    [("16.0 GT/s PCIe", 4), ("2.5 GT/s", 1), ("32.0 GT/s PCIe", 5), ("Unknown", None), ("", None)],
)
def test_speeds_of_sysfs_are_read(text: str, gen: int | None) -> None:
    """The kernel writes the transfers a second, or Unknown."""
    assert parse_speed(text) == gen


@pytest.mark.parametrize(("gen", "width"), [(None, 4), (4, None), (4, 0), (4, 255), (9, 4)])
def test_half_a_link_is_none(gen: int | None, width: int | None) -> None:
    """A link that is down (width 0 or 255) or unknown has no speed."""
    assert link_speed(gen, width) is None


@pytest.mark.parametrize(
    "text", ["01:00.0", "0000:01:00.0", "00000000:01:00.0", "00000000:01:00.0\n"]
)
def test_addresses_have_one_form(text: str) -> None:
    """lspci, sysfs and NVIDIA write the domain with none, four and eight digits."""
    assert full_address(text) == "0000:01:00.0"


def test_the_narrowest_port_counts_not_the_smallest_numbers() -> None:
    """Gen4 x4 (7.88) before Gen3 x16 (15.75) is 7.88, not the Gen3 x4 that no port has."""
    path = (
        Port(address="a", now=speeds(4, 16)),
        Port(address="b", now=speeds(4, 4)),
        Port(address="c", now=speeds(3, 16)),
    )
    found = narrowest(path, capable=False)
    assert found is not None
    assert found[0].address == "b"
    assert found[1] == speeds(4, 4)


@given(
    st.lists(st.tuples(st.sampled_from([*GENERATIONS.values()]), st.integers(1, 32)), max_size=6)
)
def test_the_narrowest_is_never_above_any_port(ports: list[tuple[int, int]]) -> None:
    """The speed of a path is at most that of each of its ports."""
    path = [Port(address=str(i), now=speeds(*each)) for i, each in enumerate(ports)]
    found = narrowest(path, capable=False)
    assert (found is None) == (not path)
    if found is not None:
        assert all(found[1].gb_s <= each.now.gb_s for each in path if each.now)


def test_a_switch_on_the_card_does_not_hide_the_slot(tmp_path: Path) -> None:
    """The GPU says Gen5 x16, its upstream port runs Gen4 x8: the latter counts."""
    chain = ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"]
    links = {
        "0000:00:01.0": ("16.0", 8, "32.0", 16),
        "0000:01:00.0": ("16.0", 8, "32.0", 16),
        "0000:02:00.0": ("32.0", 16, "32.0", 16),
        "0000:03:00.0": ("32.0", 16, "32.0", 16),
    }
    pci(tmp_path, chain, links)
    path = Topology(tmp_path, Tools({})).path("0000:03:00.0")
    assert [each.address for each in path] == chain[::-1]
    facts = link_facts(path, state=LinkState.UNDER_LOAD, source="sysfs")
    assert facts is not None
    assert facts.gen is not None
    assert facts.width is not None
    assert facts.gb_s is not None
    assert (facts.gen.value, facts.width.value) == (4, 8)
    assert facts.gb_s.value == pytest.approx(15.75, abs=0.005)
    assert facts.bottleneck is not None
    assert facts.bottleneck.value == "0000:01:00.0"


TUNNEL_CHAIN = ["0000:00:07.0", "0000:05:00.0", "0000:06:01.0", "0000:07:00.0", "0000:08:00.0"]
TUNNEL_LINKS = {
    "0000:00:07.0": ("2.5", 1, "2.5", 1),
    "0000:05:00.0": ("2.5", 4, "2.5", 4),
    "0000:06:01.0": ("8.0", 4, "8.0", 4),
    "0000:07:00.0": ("8.0", 4, "16.0", 16),
    "0000:08:00.0": ("16.0", 16, "16.0", 16),
}
TUNNEL_LSPCI = """\
0000:00:07.0 PCI bridge: Intel Corporation Tiger Lake-LP Thunderbolt 4 PCI Express Root Port
0000:05:00.0 PCI bridge: Intel Corporation JHL7540 Thunderbolt 3 Bridge [Titan Ridge DD 2018]
0000:06:01.0 PCI bridge: Intel Corporation JHL7540 Thunderbolt 3 Bridge [Titan Ridge DD 2018]
0000:07:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Upstream Port
0000:08:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21
"""


@pytest.mark.parametrize("sign", ["lspci", "removable"])
def test_tunnel_ports_are_ignored(tmp_path: Path, sign: str) -> None:
    """The tunnel says Gen1 x1, the GPU Gen4 x16; the switch's Gen3 x4 counts."""
    pci(tmp_path, TUNNEL_CHAIN, TUNNEL_LINKS)
    if sign == "removable":
        (tmp_path / "bus/pci/devices/0000:08:00.0/removable").write_text("removable\n")
    tools = Tools({"lspci": TUNNEL_LSPCI} if sign == "lspci" else {})
    path = Topology(tmp_path, tools).path("0000:08:00.0")
    assert [each.tunnel for each in path] == [False, False, False, True, True]
    facts = link_facts(path, state=LinkState.UNDER_LOAD, source="sysfs")
    assert facts is not None
    assert facts.gb_s is not None
    assert round(facts.gb_s.value, 2) == 3.94
    assert any("tunnel, ignored" in line for line in facts.path)


def test_a_tunnel_carries_no_more_than_gen3_x4(tmp_path: Path) -> None:
    """Ports behind it may promise Gen4 x4, the tunnel of 40 Gb/s does not; that is assumed."""
    links = {
        **TUNNEL_LINKS,
        "0000:06:01.0": ("16.0", 4, "16.0", 4),
        "0000:07:00.0": ("16.0", 4, "16.0", 16),
    }
    pci(tmp_path, TUNNEL_CHAIN, links)
    path = Topology(tmp_path, Tools({"lspci": TUNNEL_LSPCI})).path("0000:08:00.0")
    facts = link_facts(path, state=LinkState.UNDER_LOAD, source="sysfs")
    assert facts is not None
    assert facts.gb_s is not None
    assert round(facts.gb_s.value, 2) == 3.94
    assert facts.gb_s.origin is Origin.ASSUMED


def test_an_old_slot_is_no_tunnel() -> None:
    """Without a sign of Thunderbolt or USB4 a Gen1 port counts as Gen1."""
    path = (
        Port(address="gpu", now=speeds(4, 16), capable=speeds(4, 16)),
        Port(
            address="slot", name="PCI bridge: old chipset", now=speeds(1, 1), capable=speeds(1, 1)
        ),
    )
    assert mark_tunnels(path) == path


def test_an_idle_link_is_told_by_what_it_can_do(tmp_path: Path) -> None:
    """Idle at Gen1 x4, the path's capability stands for its speed, and the source says so."""
    chain = ["0000:00:01.0", "0000:01:00.0"]
    pci(tmp_path, chain, dict.fromkeys(chain, ("2.5", 4, "16.0", 4)))
    path = Topology(tmp_path, Tools({})).path("0000:01:00.0")
    idle = link_facts(path, state=LinkState.IDLE, source="sysfs")
    assert idle is not None
    assert idle.gen is not None
    assert idle.gb_s is not None
    assert idle.state is not None
    assert (idle.gen.value, idle.state.value) == (1, LinkState.IDLE)
    assert round(idle.gb_s.value, 2) == 7.88
    assert "not seen under load" in idle.gb_s.source
    loaded = link_facts(path, state=LinkState.UNDER_LOAD, source="sysfs")
    assert loaded is not None
    assert loaded.gb_s is not None
    assert round(loaded.gb_s.value, 2) == 1.0


def test_of_many_looks_each_port_counts_at_its_best() -> None:
    """A link that was fast once can be fast; samples of different moments are joined by port."""
    slow = (Port(address="a", now=speeds(1, 4)), Port(address="b", now=speeds(4, 4)))
    fast = (Port(address="a", now=speeds(4, 4)), Port(address="b", now=speeds(1, 4)))
    best = best_of([slow, fast, slow])
    assert [each.now for each in best] == [speeds(4, 4), speeds(4, 4)]
    assert best_of([]) == ()


def test_without_sysfs_lspci_tells_the_path(tmp_path: Path) -> None:
    """Bus numbers of the bridges lead from the device to the root."""
    text = """\
00:01.0 PCI bridge: root
\tBus: primary=00, secondary=01, subordinate=02, sec-latency=0
\t\tLnkCap:\tPort #2, Speed 16GT/s, Width x16
\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x4 (downgraded)
01:00.0 PCI bridge: switch
\tBus: primary=01, secondary=02, subordinate=02, sec-latency=0
\t\tLnkSta:\tSpeed 16GT/s, Width x8
02:00.0 VGA compatible controller: card
\t\tLnkSta:\tSpeed 16GT/s, Width x16
"""
    path = Topology(tmp_path, Tools({"lspci": text})).path("0000:02:00.0")
    assert [each.address for each in path] == ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    found = narrowest(path, capable=False)
    assert found is not None
    assert found[1] == speeds(3, 4)


def test_bridges_that_name_each_other_do_not_loop(tmp_path: Path) -> None:
    """Damaged output of lspci ends the walk, not the program."""
    text = (
        "01:00.0 PCI bridge: a\n\tBus: primary=02, secondary=02, subordinate=02\n"
        "02:00.0 PCI bridge: b\n\tBus: primary=01, secondary=01, subordinate=01\n"
    )
    path = Topology(tmp_path, Tools({"lspci": text})).path("0000:02:00.0")
    assert len(path) == 2


def test_a_path_of_which_nothing_is_known_is_none(tmp_path: Path) -> None:
    """No sysfs, no lspci: no link facts, and a reason why lspci said nothing."""
    topology = Topology(tmp_path, Tools({}))
    assert topology.path("0000:01:00.0") == ()
    assert link_facts((), state=LinkState.IDLE, source="sysfs") is None
    assert topology.trouble == "lspci is not installed"
