"""The residency is what the final lines tell, relative to roles; never the estimate."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.values.reading import Residency
from tests.engines.strata.samples import (
    ESTIMATE,
    FINAL,
    FLAGS,
    GPU,
    GREEDY,
    RESIDENT,
    ROLES,
    SESSION,
    STDERR,
    STDOUT,
    TWO_CARDS,
    card,
    read,
    survey,
    without,
)

FILLED = "strata generate: pre-filled 4400 of 4400 slots from the profile; slot 0 verified"
KIND = "CUDA NVIDIA GeForce GTX 1080 Ti"
STAGE = (
    "strata generate: layer split: CUDA1 runs layers 24-47, expert cache 12288 slots (24.69 GiB), "
    "12288 of its 12288 profiled pairs; slot 0 verified"
)
HELPER = (
    "strata generate: CUDA1: 3600 additional experts, 4.60 GiB; results return through pinned "
    "host rows"
)
TRY = "strata generate: cudaMalloc failed: out of memory; trying a smaller expert cache: 3300 slots"
SHRINK = (
    "strata generate: only 512 MiB free once the slots are written (reserve 700 MiB); shrinking "
    "the expert cache"
)
FEWER = "strata generate: expert cache: 3300 slots (6.20 GiB) after 2 smaller tries - the rest"
NO_ROOM = "strata generate: no VRAM is left for the expert cache: the experts run on the CPU"


def in_place_of(line: str, *others: str) -> str:
    """Standard error with other lines where one stands."""
    assert line in STDERR
    return STDERR.replace(line, "\n".join(others))


def test_the_final_lines_are_the_residency(tmp_path: Path) -> None:
    """Slots, resident pairs and the kind of the main device make the key."""
    residency = read(tmp_path).residency

    assert residency.known
    assert residency.key == (KIND, (("slots", 4400), ("resident", 4400)))
    assert residency.label == "4400 slots, NVIDIA GeForce GTX 1080 Ti"


@pytest.mark.parametrize("estimate", [10581, 3405, 0])
def test_the_estimate_is_no_residency(tmp_path: Path, estimate: int) -> None:
    """What the auto-sizer estimates is recorded, and decides nothing."""
    line = (
        "strata generate: expert cache auto: 27.24 GiB free, 1024 MiB reserved (+0 MiB for the "
        f"draft head) -> {estimate} slots"
    )
    reading = read(tmp_path, STDOUT, in_place_of(ESTIMATE, line))

    assert reading.residency.fact("slots") == 4400
    assert reading.context["auto_slots"] == estimate


def test_older_engines_estimate_without_the_draft_head(tmp_path: Path) -> None:
    """The older form of the estimate is read too."""
    line = "strata generate: expert cache auto: 9.1 GiB free, 700 MiB reserved -> 6964 slots"

    assert read(tmp_path, STDOUT, in_place_of(ESTIMATE, line)).context["auto_slots"] == 6964


@pytest.mark.parametrize(
    "line",
    [
        "strata generate: profile p.txt: 24576 ranked pairs, built for 24576 slots",
        "strata generate: prompt path borrows 9999 cache slots (0.38 GiB)",
        "strata generate: CUDA1 prompt path borrows 1722 of its 12288 slots",
        "strata generate: 999 lent slots refilled in 101.2 ms",
        "strata generate: WARNING: layer split: --expert-cache N leaves no room: 77 slots instead",
        SHRINK,
        TRY,
    ],
)
def test_other_lines_with_slots_are_no_size(tmp_path: Path, line: str) -> None:
    """The word "slots" stands on many kinds of line; only the final ones count."""
    reading = read(tmp_path, STDOUT, STDERR + line + "\n")

    assert reading.residency == read(tmp_path).residency


def test_a_retried_cache_counts_with_its_last_size(tmp_path: Path) -> None:
    """After smaller tries the colon form tells what was opened."""
    reading = read(tmp_path, STDOUT, in_place_of(FINAL, TRY, FEWER))

    assert reading.residency.fact("slots") == 3300
    assert reading.context["cache_shrunk"] is True
    assert not reading.signs
    assert read(tmp_path).context["cache_shrunk"] is False


def test_of_two_final_lines_the_later_counts(tmp_path: Path) -> None:
    """Whatever its form, the last word on the size is the size."""
    first = read(tmp_path, STDOUT, in_place_of(FINAL, FEWER, FINAL)).residency
    second = read(tmp_path, STDOUT, in_place_of(FINAL, FINAL, FEWER)).residency

    assert (first.fact("slots"), second.fact("slots")) == (4400, 3300)


def test_no_room_for_a_cache_is_no_slots(tmp_path: Path) -> None:
    """An engine that says that no memory is left has a known residency of none."""
    reading = read(tmp_path, STDOUT, without(in_place_of(FINAL, NO_ROOM), FILLED, RESIDENT))

    assert reading.residency.key == (KIND, (("slots", 0),))


@pytest.mark.parametrize(
    "flags",
    [
        ("--expert-cache", "auto"),
        ("--expert-cache", "512"),
        ("--expert-profile", "p"),
        ("--expert-profile", "p", "--expert-cache", "0"),
        ("--expert-cache", "0", "--expert-cache", "12abc"),
    ],
)
def test_a_cache_that_was_asked_for_must_be_told(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A missing final line makes the residency unknown, and unknown equals nothing."""
    unknown = read(tmp_path, STDOUT, without(STDERR, FINAL), flags=flags).residency

    assert not unknown.known
    assert "no line tells its final size" in (unknown.unknown or "")
    assert not unknown.equals(unknown)


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--expert-cache", "0"),
        ("--expert-cache", "512", "--expert-cache", "0"),
        ("--expert-cache", "auto", "--expert-cache", "foo"),
        ("--expert-cache",),
    ],
)
def test_no_cache_asked_and_none_printed_is_none(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Numbers that are none are 0 to the engine, and the last of a repeated flag counts."""
    stderr = without(STDERR, ESTIMATE, FINAL, FILLED, RESIDENT)

    assert read(tmp_path, STDOUT, stderr, flags=flags).residency.key == (KIND, (("slots", 0),))


def test_without_its_device_line_a_residency_is_unknown(tmp_path: Path) -> None:
    """Only the ambient device line tells where the main model is."""
    reading = read(tmp_path, STDOUT, without(STDERR, GPU), found=survey(card(0)))

    assert "no 'GPU N:' line" in (reading.residency.unknown or "")
    assert reading.main.device is None


def test_two_main_devices_are_unknown(tmp_path: Path) -> None:
    """Two device lines of different ordinals cannot both be the main one."""
    other = GPU.replace("GPU 0", "GPU 1")

    assert "0, 1" in (read(tmp_path, STDOUT, STDERR + other + "\n").residency.unknown or "")


def test_of_several_processes_in_one_log_the_last_counts(tmp_path: Path) -> None:
    """A cache size that an earlier process printed is not the later one's."""
    cut = STDERR.partition(ESTIMATE)[0]

    assert not read(tmp_path, STDOUT, STDERR + cut).residency.known
    assert read(tmp_path, STDOUT, cut + STDERR).residency.fact("slots") == 4400


def test_a_later_process_without_a_device_line_is_unknown(tmp_path: Path) -> None:
    """What an earlier process printed does not tell where a later one computed."""
    later = f"{FINAL}\n{SESSION}\n{GREEDY}\n"

    assert "later process" in (read(tmp_path, STDOUT, STDERR + later).residency.unknown or "")
    assert read(tmp_path, STDOUT, STDERR + later).main.device is None
    assert read(tmp_path, STDOUT, later + STDERR).residency.fact("slots") == 4400


def test_pairs_that_were_not_filled_are_not_resident(tmp_path: Path) -> None:
    """Slots that the profile does not fill hold nothing."""
    part = FILLED.replace("4400 of", "4100 of")
    residency = read(tmp_path, STDOUT, without(in_place_of(FILLED, part), RESIDENT)).residency
    full = read(tmp_path, STDOUT, without(STDERR, RESIDENT)).residency

    assert residency.key == (KIND, (("slots", 4400), ("resident", 4100)))
    assert residency.label == "4400 slots, NVIDIA GeForce GTX 1080 Ti; 4100 resident"
    assert full.key == (KIND, (("slots", 4400),))


def test_the_newer_form_of_the_fill_is_read(tmp_path: Path) -> None:
    """From 0.1.40 on the fill also tells its time."""
    newer = (
        "strata generate: pre-filled 3 of 4400 slots from the profile in 9.9 s (2399 MB/s); slot"
    )

    residency = read(tmp_path, STDOUT, without(in_place_of(FILLED, newer), RESIDENT)).residency
    assert residency.fact("resident") == 3


def test_stages_and_helpers_are_part_of_the_key(tmp_path: Path) -> None:
    """What other devices hold is told apart, with the kind of device that holds it."""
    found = survey(card(0), card(1, "NVIDIA GeForce RTX 3060"))
    staged = read(tmp_path, STDOUT, STDERR + STAGE + "\n", found=found).residency
    helped = read(tmp_path, STDOUT, STDERR + HELPER + "\n", found=found).residency

    assert staged.fact("stage 1") == "layers 24-47, 12288 slots on CUDA NVIDIA GeForce RTX 3060"
    assert helped.fact("helper 1") == "3600 experts on CUDA NVIDIA GeForce RTX 3060"
    assert "stage 1: layers 24-47, 12288 slots" in staged.label
    assert not staged.equals(helped)
    smaller = STAGE.replace("12288 slots", "6000 slots")
    assert not staged.equals(read(tmp_path, STDOUT, STDERR + smaller + "\n", found=found).residency)


def test_stages_are_numbered_by_their_layers(tmp_path: Path) -> None:
    """Which ordinal holds a stage is no part of the key; its layers and its kind are."""
    later = STAGE.replace("CUDA1", "CUDA2").replace("24-47", "36-47")
    first = STAGE.replace("24-47", "24-35") + " (220 MiB kept for the draft head)"
    cards = survey(card(0), card(1), card(2))
    swapped = later.replace("CUDA2", "CUDA1"), first.replace("CUDA1", "CUDA2")
    one = read(tmp_path, STDOUT, f"{STDERR}{first}\n{later}\n", found=cards).residency
    other = read(tmp_path, STDOUT, f"{STDERR}{swapped[0]}\n{swapped[1]}\n", found=cards).residency

    assert str(one.fact("stage 1")).startswith("layers 24-35, ")
    assert str(one.fact("stage 2")).startswith("layers 36-47, ")
    assert one.equals(other)


def test_helpers_are_numbered_by_their_ordinal(tmp_path: Path) -> None:
    """A helper's experts are ranked behind those of the helpers before it."""
    third = HELPER.replace("CUDA1: 3600", "CUDA10: 20")
    second = HELPER.replace("CUDA1: 3600", "CUDA2: 10")
    residency = read(tmp_path, STDOUT, f"{STDERR}{third}\n{second}\n{HELPER}\n").residency

    assert [str(residency.fact(f"helper {n}")).split()[0] for n in (1, 2, 3)] == [
        "3600",
        "10",
        "20",
    ]


def test_a_device_of_unknown_kind_is_known_by_its_number(tmp_path: Path) -> None:
    """Two devices whose kinds no line tells are not taken for alike."""
    here = read(tmp_path, STDOUT, STDERR + HELPER + "\n").residency
    there = read(tmp_path, STDOUT, STDERR + HELPER.replace("CUDA1", "CUDA2") + "\n").residency

    assert here.fact("helper 1") == "3600 experts on device 1"
    assert not here.equals(there)


def test_role_lines_tell_kinds_too(tmp_path: Path) -> None:
    """Where no survey knew a device, its role line names it."""
    reading = read(tmp_path, STDOUT, TWO_CARDS + STDERR + HELPER + "\n")

    assert reading.residency.fact("helper 1") == "3600 experts on CUDA NVIDIA GeForce RTX 3060"
    assert reading.devices == (f"0: {KIND}", "1: CUDA NVIDIA GeForce RTX 3060")


def test_equal_cards_give_equal_keys_whichever_is_the_main_one(tmp_path: Path) -> None:
    """The key speaks of roles and kinds, never of ordinals."""
    cards = survey(card(0), card(1))
    here = read(tmp_path, STDOUT, STDERR + HELPER + "\n", found=cards)
    moved = (STDERR + HELPER + "\n").replace("GPU 0", "GPU 1").replace("CUDA1", "CUDA0")
    there = read(tmp_path, STDOUT, moved, found=cards)

    assert here.residency.equals(there.residency)
    assert (here.main.device, there.main.device) == ("0", "1")


def test_another_card_is_another_residency(tmp_path: Path) -> None:
    """A 3090 and a 3060 round differently, equal slots or not."""
    other = GPU.replace("GTX 1080 Ti, compute capability 6.1", "RTX 3060, compute capability 8.6")

    assert not read(tmp_path).residency.equals(
        read(tmp_path, STDOUT, in_place_of(GPU, other)).residency
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (GPU, KIND),
        (GPU + " and more", KIND),
        (
            "strata generate: GPU 0: AMD Radeon RX 9070 XT (gfx1201)",
            "HIP AMD Radeon RX 9070 XT",
        ),
        (
            "strata generate: GPU 0: AMD Radeon RX 7900 GRE (RADV NAVI31) (gfx1100, wave32)",
            "HIP AMD Radeon RX 7900 GRE (RADV NAVI31)",
        ),
        (
            GPU + " (STRATA_EMULATE_CC: a test mode, the card is emulated)",
            f"{KIND} (emulated)",
        ),
    ],
)
def test_the_kind_is_backend_and_model(tmp_path: Path, line: str, kind: str) -> None:
    """Both forms of the device line are read; an emulated card is a kind of its own."""
    assert read(tmp_path, STDOUT, in_place_of(GPU, line)).residency.main_kind == kind


def test_roles_do_not_say_where_the_main_model_is(tmp_path: Path) -> None:
    """What a role line announces moves nothing: the ambient device is the main one."""
    roles = ROLES.replace("main 0, draft 1", "main 1, draft 0")
    reading = read(tmp_path, STDOUT, STDERR + roles + "\n")

    assert reading.main.device == "0"


def test_flags_do_not_tell_the_size_either(tmp_path: Path) -> None:
    """A forced size counts with what was opened, not with what was asked."""
    reading = read(tmp_path, flags=(*FLAGS, "--expert-cache", "5011"))

    assert reading.recorded["forced_cache"] == 5011
    assert reading.residency.fact("slots") == 4400


@pytest.mark.parametrize("line", [STAGE, HELPER])
def test_behind_a_mask_a_bare_number_is_no_card(tmp_path: Path, line: str) -> None:
    """A device that the log does not name is like itself behind the same mask alone."""
    log = in_place_of(FINAL, FINAL, line)

    def behind(mask: str | None) -> Residency:
        env = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
        return read(tmp_path, STDOUT, log, found=survey(card(0), card(1)), env=env).residency

    assert behind("0,1").equals(behind("0,1"))
    assert not behind("0,1").equals(behind("0,2"))
    assert not behind("0,1").equals(behind(None))
