"""What the log proves of where the main model and the drafter are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.values.reading import Sighting
from tests.engines.strata.samples import (
    AFTER_BINDING,
    FLAGS,
    GPU,
    ROLES,
    STDERR,
    STDOUT,
    TWO_CARDS,
    WORKSPACE,
    card,
    read,
    survey,
    without,
)

STAYS = (
    "strata mtp: the RoPE tables on the draft device could not be filled (an illegal memory "
    "access was encountered); the drafter stays on the main path"
)
PICKED = TWO_CARDS.partition("\n")[0]
APART = (*FLAGS, "--main-device", "0", "--draft-device", "1")
SWAPPED = (*FLAGS, "--main-device", "1", "--draft-device", "0")
MAIN_SEEN = Sighting(part="main", value="0", line=GPU)


def test_the_ambient_device_is_where_the_main_model_is(tmp_path: Path) -> None:
    """The device line is seen in every run, with and without roles."""
    assert read(tmp_path).sightings == (MAIN_SEEN,)


def test_workspace_and_roles_together_prove_the_drafter(tmp_path: Path) -> None:
    """The workspace line says that it is elsewhere, the role line says where."""
    reading = read(tmp_path, STDOUT, f"{ROLES}\n{WORKSPACE}\n{STDERR}", flags=APART)

    assert reading.sightings == (MAIN_SEEN, Sighting(part="draft", value="1", line=WORKSPACE))
    assert reading.draft.device == "1"


def test_picked_roles_serve_as_well(tmp_path: Path) -> None:
    """The engine's own announcement names the ordinal, and is kept as what was picked."""
    stderr = f"{PICKED}\n{WORKSPACE}\n{STDERR}"
    reading = read(tmp_path, STDOUT, stderr, flags=(*FLAGS, "--auto-roles"))

    assert Sighting(part="draft", value="1", line=WORKSPACE) in reading.sightings
    assert reading.picked == {"main": "0", "draft": "1"}


def test_roles_alone_prove_nothing(tmp_path: Path) -> None:
    """What is announced is not yet done."""
    reading = read(tmp_path, STDOUT, f"{ROLES}\n{STDERR}", flags=APART)

    assert reading.sightings == (MAIN_SEEN,)
    assert reading.draft.device is None
    assert reading.picked == {}


def test_the_workspace_alone_names_no_device(tmp_path: Path) -> None:
    """Off the main device may be anywhere."""
    reading = read(tmp_path, STDOUT, f"{WORKSPACE}\n{STDERR}", flags=APART)

    assert reading.sightings == (MAIN_SEEN,)
    assert reading.draft.kind is None


def test_a_workspace_elsewhere_contradicts_roles_on_the_main_device(tmp_path: Path) -> None:
    """Where both cannot be true neither is believed."""
    roles = ROLES.replace("main 0, draft 1", "main 1, draft 0")
    reading = read(tmp_path, STDOUT, f"{roles}\n{WORKSPACE}\n{STDERR}", flags=SWAPPED)

    assert reading.sightings == (MAIN_SEEN,)
    assert reading.draft.device is None


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("roles", ["main 1, draft 0 (two GPUs; x)", "main 0, draft 0 (degenerate)"])
def test_roles_that_nobody_asked_for_contradict(tmp_path: Path, roles: str, *, first: bool) -> None:
    """One line of other roles outweighs the right one, on whichever side of it."""
    astray = f"strata generate: device roles: {roles}"
    lines = (astray, ROLES) if first else (ROLES, astray)
    reading = read(tmp_path, STDOUT, "\n".join((*lines, WORKSPACE, STDERR)), flags=APART)

    assert Sighting(part="draft", value="0", line=astray) in reading.sightings
    assert {seen.line for seen in reading.sightings} <= {GPU, WORKSPACE, astray}


@pytest.mark.parametrize(
    "flags", [APART, (*FLAGS, "--draft-device", "1"), (*FLAGS, "--auto-roles")]
)
def test_roles_as_asked_or_picked_are_not_astray(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A role whose flag is not given is 0, and roles may be left to the engine."""
    stderr = f"{PICKED}\n{ROLES}\n{WORKSPACE}\n{STDERR}"

    assert len(read(tmp_path, STDOUT, stderr, flags=flags).sightings) == 2
    astray = stderr.replace("roles: main 0, draft 1", "roles: main 0, draft 2")
    found = read(tmp_path, STDOUT, astray, flags=flags).sightings
    assert [seen.value for seen in found if seen.part == "draft" and seen.line != WORKSPACE] == [
        "2"
    ]


def test_what_an_earlier_process_proved_is_not_the_later_ones(tmp_path: Path) -> None:
    """In a log that was appended to, proof and roles must be of the process that is judged."""
    moved = f"{PICKED}\n{ROLES}\n{WORKSPACE}\n{STDERR}"
    for log in (moved + STDERR, moved + moved + STDERR, f"{moved}{ROLES}\n{STDERR}"):
        reading = read(tmp_path, STDOUT, log, flags=APART)

        assert {seen.part for seen in reading.sightings} == {"main"}
        assert reading.picked == {}
    astray = moved.replace("main 0, draft 1", "main 1, draft 0")
    for log in (STDERR + moved, moved + moved, astray + moved):
        reading = read(tmp_path, STDOUT, log, flags=APART)

        drafts = [seen for seen in reading.sightings if seen.part == "draft"]
        assert drafts == [Sighting(part="draft", value="1", line=WORKSPACE)]


def test_a_fallback_counts_whichever_process_had_it(tmp_path: Path) -> None:
    """Of two processes in one log, what speaks against a move is believed."""
    fell = f"{ROLES}\n{STAYS}\n{STDERR}"
    for log in (f"{fell}{ROLES}\n{WORKSPACE}\n{STDERR}", fell + fell):
        reading = read(tmp_path, STDOUT, log, flags=APART)

        assert Sighting(part="draft", value="0", line=STAYS) in reading.sightings


def test_without_the_main_device_the_drafter_is_not_proven(tmp_path: Path) -> None:
    """The drafter's place is told relative to the main model's."""
    stderr = without(f"{ROLES}\n{WORKSPACE}\n{STDERR}", GPU)

    assert read(tmp_path, STDOUT, stderr, flags=APART).sightings == ()


def test_the_silent_fallback_is_seen(tmp_path: Path) -> None:
    """A drafter that could not be moved is on the main device, and that is no failure."""
    reading = read(tmp_path, STDOUT, f"{ROLES}\n{STAYS}\n{STDERR}", flags=APART)

    assert reading.sightings == (MAIN_SEEN, Sighting(part="draft", value="0", line=STAYS))
    assert reading.draft.device == "0"
    assert reading.signs == ()
    nowhere = read(tmp_path, STDOUT, without(f"{STAYS}\n{STDERR}", GPU), flags=APART)
    assert nowhere.sightings == (Sighting(part="draft", value="the main path", line=STAYS),)


def test_a_drafter_without_roles_is_on_the_main_device(tmp_path: Path) -> None:
    """Nothing moves a drafter that no flag moves; without a drafter there is no place."""
    found = survey(card(0))

    assert read(tmp_path, found=found).draft.device == "0"
    assert read(tmp_path, found=found).draft.kind == card(0).kind
    assert read(tmp_path, flags=("--pack", "p")).draft.device is None


def test_roles_that_name_the_main_device_leave_the_drafter_there(tmp_path: Path) -> None:
    """As read in the engine, a swap of roles keeps both where they were."""
    roles = ROLES.replace("main 0, draft 1", "main 1, draft 0")
    reading = read(tmp_path, STDOUT, f"{roles}\n{STDERR}", flags=SWAPPED)

    assert reading.draft.device == "0"
    assert reading.sightings == (MAIN_SEEN,)


def test_the_drafters_kind_is_its_devices(tmp_path: Path) -> None:
    """On unlike cards the drafter's own arithmetic depends on where it is."""
    reading = read(tmp_path, STDOUT, f"{TWO_CARDS}{ROLES}\n{WORKSPACE}\n{STDERR}", flags=APART)

    assert reading.draft.kind == "CUDA NVIDIA GeForce RTX 3060"


def test_role_memory_and_peer_lines_are_kept_as_they_are(tmp_path: Path) -> None:
    """The report shows them word by word, each once, in the order of the log."""
    stderr = f"{TWO_CARDS}{ROLES}\n{STDERR}{AFTER_BINDING}{AFTER_BINDING}"
    reading = read(tmp_path, STDOUT, stderr, flags=APART)

    wanted = [*TWO_CARDS.splitlines(), ROLES, GPU, *AFTER_BINDING.splitlines()]
    assert [line for line in reading.lines if line in wanted] == wanted
    assert reading.context["vram_free_after"] == "0: 633 of 11163 MiB, 1: 9619 of 11165 MiB"


def test_kept_lines_are_bounded(tmp_path: Path) -> None:
    """A log that never ends fills no report."""
    many = "".join(f"strata trace: {n} MiB free after {'x' * 999}\n" for n in range(500))
    reading = read(tmp_path, STDOUT, many)

    assert len(reading.lines) <= 64
    assert max(map(len, reading.lines)) <= 300


def test_free_memory_is_kept_wherever_it_stands(tmp_path: Path) -> None:
    """A line that tells free memory is kept whatever it begins with."""
    low = (
        "strata generate: 186 MiB of VRAM free with everything loaded - LOW: requests may stall; "
        "add --vram-reserve-mib 1026"
    )
    reading = read(tmp_path, STDOUT, f"{STDERR}{low}\n")

    assert low in reading.lines
    assert reading.signs == ()
