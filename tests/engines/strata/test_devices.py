"""What the binaries tell of devices and flags; distinct ordinals are counted, never lines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from hetero_test.engines.base import Binaries, Survey
from hetero_test.engines.strata.adapter import Strata
from hetero_test.engines.strata.devices import parse_listing, survey
from hetero_test.errors import UsageError
from hetero_test.values.run import Device

pytestmark = pytest.mark.process

LISTING = """\
device 0: NVIDIA GeForce GTX 1080 Ti
  compute capability 6.1, 10.9 GiB
device 1: NVIDIA GeForce RTX 3090
  compute capability 8.6, 24.0 GiB
"""
HIP_LISTING = """\
device 0: AMD Radeon RX 9070 XT
  arch gfx1201, 15.9 GiB, wave32
"""
ONE_BLOCK = """\
device 0: NVIDIA GeForce GTX 1080 Ti
  compute capability  6.1   (sm_61)
  multiprocessors     28
  VRAM total / free   10.902 GiB (11705778176 B) / 10.641 GiB (11425808384 B)
  driver / runtime    12060 / 12060
"""
SECOND_BLOCK = """
device 0: NVIDIA GeForce GTX 1080 Ti
  compute capability  6.1   (sm_61)
  VRAM total / free   10.902 GiB (11705778176 B) / 10.641 GiB (11425808384 B)
  shared mem default / opt-in  49152 / 49152 B
  dp4a yes   int8 mma no   tf32 mma no   cp.async no
"""
OTHER_BLOCK = SECOND_BLOCK.replace("device 0", "device 1")
PEERS = """
peer access (canAccessPeer, reported - never enabled here):
  0 -> 1: yes
  1 -> 0: yes

memory plan  --max-context 20480
  card free           10.6 GiB
  plan + KV vs free   FITS
"""
USAGE = "usage: strata --pack DIR [--main-device N]\n  --expert-cache N|auto   -h, --help\n"


def test_a_listing_gives_its_devices() -> None:
    """Each with its model, its kind and its memory."""
    listing = parse_listing(LISTING)

    assert listing.devices == (
        Device(
            id="0",
            name="NVIDIA GeForce GTX 1080 Ti",
            kind="CUDA NVIDIA GeForce GTX 1080 Ti",
            memory_bytes=round(10.9 * 2**30),
        ),
        Device(
            id="1",
            name="NVIDIA GeForce RTX 3090",
            kind="CUDA NVIDIA GeForce RTX 3090",
            memory_bytes=24 * 2**30,
        ),
    )
    assert listing.notes == ()


@pytest.mark.parametrize(
    ("text", "ordinals"),
    [
        (ONE_BLOCK, ["0"]),
        (ONE_BLOCK + SECOND_BLOCK, ["0"]),
        (ONE_BLOCK + SECOND_BLOCK + OTHER_BLOCK + PEERS, ["0", "1"]),
        (HIP_LISTING + HIP_LISTING, ["0"]),
        (LISTING + ONE_BLOCK, ["0", "1"]),
        ("device 10: A\ndevice 9: B\n", ["9", "10"]),
        ("(no GPU device)\n", []),
        ("device x: A\n device 0: B\nmy device 0: C\n", []),
        ("", []),
    ],
)
def test_ordinals_are_counted_once(text: str, ordinals: list[str]) -> None:
    """A card that is described twice is one card."""
    assert [device.id for device in parse_listing(text).devices] == ordinals


def test_exact_memory_is_preferred() -> None:
    """The default output prints bytes."""
    assert parse_listing(ONE_BLOCK).devices[0].memory_bytes == 11705778176


@pytest.mark.parametrize(
    "text",
    [
        HIP_LISTING,
        "device 0: AMD Radeon RX 9070 XT\n  HIP arch  gfx1201 wave32 (compiled for gfx1201)\n",
        "device 0: AMD Radeon RX 9070 XT\n\ndevice 0: AMD Radeon RX 9070 XT (HIP gfx1201)\n",
    ],
)
def test_the_forms_of_hip_are_read(text: str) -> None:
    """A build has one backend; whatever line shows it, the name stays the card's."""
    device = parse_listing(text).devices[0]

    assert device.name == "AMD Radeon RX 9070 XT"
    assert device.kind == "HIP AMD Radeon RX 9070 XT"


def test_a_device_that_cannot_run_is_noted() -> None:
    """It is listed and counted, and the report says what the engine says of it."""
    listing = parse_listing(LISTING + "  cannot run: below compute capability 7.5\n")

    assert listing.devices[1].note == "cannot run: below compute capability 7.5"
    assert listing.notes == ("device 1: cannot run: below compute capability 7.5",)
    assert len(listing.devices) == 2


def test_an_emulated_card_is_another_kind() -> None:
    """Its arithmetic is not that of the card it pretends to be."""
    line = "  compute capability 6.1  (STRATA_EMULATE_CC is on: a test mode; the cc above is …)\n"
    device = parse_listing("device 0: RTX 3090\n" + line).devices[0]

    assert device.kind == "CUDA RTX 3090 (emulated)"
    assert "emulated" in (device.note or "")


def test_a_listing_that_does_not_hold_together_says_so() -> None:
    """Two names for one ordinal, and an ordinal that is left out."""
    assert parse_listing("device 0: A\ndevice 0: B\n").notes == (
        "device 0 is listed as A and as B",
    )
    assert parse_listing("device 0: A\ndevice 2: B\n").notes == ("no device 1 is listed",)


def ask(
    folder: Path,
    answers: Mapping[str, str],
    *,
    help_script: str | None = None,
    devices: int | None = None,
    ask_s: float = 20.0,
) -> Survey:
    """The survey of a build whose tools are these shell scripts, by their first argument."""
    tools = {"strata": help_script or f"printf %s {shlex.quote(USAGE)} >&2"}
    if answers:
        cases = "\n".join(f"{shlex.quote(arg)}) {script};;" for arg, script in answers.items())
        tools["strata-device"] = f'case "$1" in\n{cases}\nesac'
    for name, script in tools.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    device_tool = folder / "strata-device" if answers else None
    binaries = Binaries(engine=folder / "strata", device_tool=device_tool, build_dir=folder)
    return survey(binaries, devices=devices, ask_s=ask_s)


def says(text: str) -> str:
    """A script that prints this."""
    return f"printf %s {shlex.quote(text)}"


REFUSES = "echo 'strata-device: unknown argument: --list-devices' >&2; exit 2"
LIST = "--list-devices"
FORK = ONE_BLOCK + SECOND_BLOCK + OTHER_BLOCK + PEERS


def test_the_list_is_asked_first(tmp_path: Path) -> None:
    """Where the tool lists devices, that is what counts."""
    found = ask(tmp_path, {LIST: says(LISTING), "": says(ONE_BLOCK)})

    assert (found.device_count, found.how) == (2, "strata-device --list-devices")
    assert [device.id for device in found.devices] == ["0", "1"]
    assert found.notes == ()


def test_a_list_of_one_is_one_device(tmp_path: Path) -> None:
    """The list shows every device, so one is one."""
    assert ask(tmp_path, {LIST: says(HIP_LISTING)}).device_count == 1


def test_a_list_of_none_is_none(tmp_path: Path) -> None:
    """The tool says that there is no device: that is known, not unknown."""
    found = ask(tmp_path, {LIST: says("(no GPU device)\n")})

    assert (found.device_count, found.devices) == (0, ())


@pytest.mark.parametrize(
    ("text", "count"),
    [(FORK, 2), (ONE_BLOCK + SECOND_BLOCK, 1), (ONE_BLOCK + PEERS, 1), ("(no GPU device)", 0)],
)
def test_an_older_tool_is_asked_for_its_default_output(
    tmp_path: Path, text: str, count: int
) -> None:
    """Builds that know the roles describe every card."""
    found = ask(tmp_path, {LIST: REFUSES, "": says(text)})

    assert (found.device_count, found.how) == (count, "strata-device")
    assert "exit code 2: strata-device: unknown argument" in found.notes[0]


def test_a_default_output_that_stops_at_the_first_device_tells_no_count(tmp_path: Path) -> None:
    """Upstream's describes ordinal 0 alone, however many there are."""
    found = ask(tmp_path, {LIST: REFUSES, "": says(ONE_BLOCK)})

    assert (found.device_count, found.devices, found.how) == (None, (), "not found")
    assert "device 0 alone" in found.notes[1]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "exit code 1"),
        (says(LISTING) + "; kill -SEGV $$", "SIGSEGV"),
        (says(LISTING) + "; exit 3", "exit code 3"),
        ("printf '\\000\\377 junk'", "lists no device"),
        ("sleep 60", "stopped (run-limit)"),
        ("while :; do echo device; done", "stopped (output-cap)"),
    ],
)
def test_a_tool_that_fails_tells_nothing(tmp_path: Path, script: str, said: str) -> None:
    """Whatever a failing tool printed, the count stays unknown and the reason is told."""
    found = ask(tmp_path, {LIST: script, "": "exit 1"}, ask_s=1.0 if "sleep" in script else 20.0)

    assert found.device_count is None
    assert any(said in note for note in found.notes)


def test_without_a_tool_the_count_is_unknown(tmp_path: Path) -> None:
    """A missing tool does not mean one device."""
    found = ask(tmp_path, {})

    assert found.device_count is None
    assert found.notes == ("strata-device: there is none in the build",)


def test_a_number_that_the_user_gives_rules(tmp_path: Path) -> None:
    """The devices that are known stay known, and a contradiction is noted."""
    found = ask(tmp_path, {LIST: says(LISTING)}, devices=4)
    unknown = ask(tmp_path, {}, devices=4)

    assert (found.device_count, found.how, len(found.devices)) == (4, "--devices 4", 2)
    assert found.notes == ("--devices 4 was given; strata-device --list-devices shows 2",)
    assert unknown.device_count == 4
    assert not any("was given" in note for note in unknown.notes)


def test_the_flags_are_those_of_the_help(tmp_path: Path) -> None:
    """The help is on standard error; elsewhere it is as good."""
    expected = frozenset({"--pack", "--main-device", "--expert-cache", "--help"})

    assert ask(tmp_path, {}).known_flags == expected
    assert ask(tmp_path, {}, help_script=says(USAGE)).known_flags == expected


@pytest.mark.parametrize(
    "script", [says(USAGE) + "; exit 1", "exit 0", "kill -ABRT $$", "sleep 60", "exec /no/such"]
)
def test_a_help_that_fails_tells_no_flags(tmp_path: Path, script: str) -> None:
    """Unknown flags are not absent flags."""
    found = ask(tmp_path, {}, help_script=script, ask_s=1.0 if "sleep" in script else 20.0)

    assert found.known_flags is None
    assert "--help could not be used" in found.notes[0]


def test_an_engine_that_cannot_be_started_tells_no_flags(tmp_path: Path) -> None:
    """A binary that is not executable is a fact, no failure of the survey."""
    (tmp_path / "strata").write_text("no program")
    binaries = Binaries(engine=tmp_path / "strata", device_tool=None, build_dir=tmp_path)
    found = Strata().survey(binaries, (), devices=None, kinds={}, fast=None)

    assert found.known_flags is None
    assert "could not be started" in found.notes[0]


@pytest.mark.parametrize(("kinds", "fast"), [({"0": "x"}, None), ({}, "1")])
def test_nothing_is_declared_of_devices_that_tell_themselves(
    tmp_path: Path, kinds: dict[str, str], fast: str | None
) -> None:
    """Kinds and the fast device are for engines that cannot know."""
    binaries = Binaries(engine=tmp_path / "strata", device_tool=None, build_dir=tmp_path)

    with pytest.raises(UsageError, match="Strata"):
        Strata().survey(binaries, (), devices=None, kinds=kinds, fast=fast)
