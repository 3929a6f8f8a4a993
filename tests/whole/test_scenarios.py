"""Named rigs, each played by the scripted engine from launch to exit code.

Each scenario says what the right answer is; a PASS that was not earned, or a FAIL that is no
fault of the placement, fails here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scripted import BASELINE, MODEL_FLAGS, Rule, always, when
from tests.whole.scenario import FAIL, OPEN, PASS, Scenario, hold

pytestmark = pytest.mark.process

FAST = ("--idle-timeout", "0.6", "--timeout", "20")
VARIANT_4 = ("--draft-chain-batch",)


def variants(**do: Any) -> tuple[Rule, ...]:
    """Rules for everything but the baseline."""
    return tuple(when(flag, **do) for flag in ("--main-device", "--auto-roles"))


SCENARIOS = (
    # ---- nothing wrong
    Scenario("two equal cards", (), PASS, results={("anchor", "1f"): ["PASS", "PASS"]}),
    Scenario(
        "main model that never moves (as read in the engine's source)",
        (always(moves=False),),
        PASS,
        effects={"1": "PROVEN", "2": "CONTRADICTED", "3": "UNOBSERVABLE"},
        said=("variant 2 did not go where its flags say",),
    ),
    Scenario(
        "the same, strict",
        (always(moves=False),),
        OPEN,
        args=("--strict",),
        said=("strict",),
    ),
    Scenario(
        "equal residency everywhere: nobody needs an anchor",
        (always(slots_apart=4400),),
        PASS,
        results={("exact", "1"): ["PASS", "PASS"], ("anchor", "1f"): []},
    ),
    Scenario(
        "forced cache of the user's holds for every variant",
        (),
        PASS,
        flags=(*MODEL_FLAGS, "--expert-cache", "4000"),
        results={("exact", "1"): ["PASS", "PASS"]},
    ),
    Scenario(
        "one repeat", (), PASS, args=("--repeats", "1"), results={("repeat", "1"): ["SKIPPED"]}
    ),
    Scenario("four repeats", (), PASS, args=("--repeats", "4", "--max-new", "20")),
    Scenario("warm-up", (), PASS, args=("--warmup", "1")),
    Scenario(
        "one card: variants 0 and 7",
        (),
        PASS,
        args=("--devices", "1"),
        build={"devices": 1},
        said=("no placement was tested", "1 device"),
    ),
    Scenario(
        "native pack: the estimate is forced, the final size comes of it",
        (always(native=True, estimate=3000, budget=1.5, slots=4500, slots_apart=4800),),
        PASS,
        results={("anchor", "1f"): ["PASS", "PASS"]},
    ),
    Scenario(
        "native pack as seen in the field: 10581 is forced, 12288 are opened, and it is said",
        (
            always(
                native=True, estimate=10581, budget=12288 / 10581, slots=12288, slots_apart=12900
            ),
        ),
        PASS,
        results={("anchor", "1f"): ["PASS", "PASS"]},
        said=("10581 forced, 12288 opened",),
    ),
    Scenario(
        "clipped cache: a pair with one shared size",
        (when("--main-device", "--expert-cache 4400", clip=4100, slots_apart=5011),),
        PASS,
        results={
            ("anchor", "1f"): ["SKIPPED", "SKIPPED"],
            ("anchor", "1s"): ["PASS", "PASS"],
            ("repeat", "0s"): ["PASS"],
        },
    ),
    Scenario(
        "clipped again: inconclusive, with the numbers",
        (
            when("--main-device", "--expert-cache 4400", clip=4100),
            when("--main-device", "--expert-cache 4100", clip=3900),
        ),
        OPEN,
        said=("4100", "3900"),
    ),
    Scenario(
        "unequal cards: the moved main model is compared with the baseline at its new home",
        (always(cards=["NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce RTX 3060"]),),
        PASS,
        results={("exact", "2"): ["PASS", "PASS"], ("repeat", "0-home-2"): ["PASS"]},
    ),
    Scenario(
        "unequal cards: a wrong token at the new home",
        (
            always(cards=["NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce RTX 3060"]),
            when("--main-device 1", flip=7),
        ),
        FAIL,
        results={("exact", "2"): ["FAIL", "FAIL"]},
    ),
    # ---- a wrong stream
    Scenario(
        "one token of one variant, early",
        (when(*VARIANT_4, flip=0),),
        FAIL,
        results={("exact", "4"): ["FAIL", "FAIL"], ("exact", "3"): ["PASS", "PASS"]},
        said=("token 0",),
    ),
    Scenario("one token, late", (when("--auto-roles", flip=42),), FAIL, said=("token 42",)),
    Scenario("the last token", (when("--auto-roles", flip=59),), FAIL, said=("token 59",)),
    Scenario(
        "all placements wrong alike",
        variants(flip=5),
        FAIL,
        results={("exact", "3"): ["PASS", "PASS"], ("anchor", "1f"): ["FAIL", "FAIL"]},
    ),
    Scenario(
        "all placements wrong alike, and the baseline without a cache line",
        (*variants(flip=5), when(without=BASELINE, final_line=False, resident_line=False)),
        OPEN,
    ),
    Scenario(
        "wrong only with the baseline's residency",
        (when("--main-device", "--expert-cache 4400", flip=3),),
        FAIL,
        results={("anchor", "1f"): ["FAIL", "FAIL"]},
    ),
    Scenario(
        "one variant does not repeat itself",
        (when("--auto-roles", noise=True),),
        FAIL,
        results={("repeat", "6"): ["FAIL"]},
    ),
    Scenario(
        "one variant differs in its second run only",
        (when("--auto-roles", nth=[2], flip=30),),
        FAIL,
        results={("repeat", "6"): ["FAIL"], ("exact", "6"): ["PASS", "FAIL"]},
    ),
    Scenario(
        "the baseline does not repeat itself",
        (when(without=BASELINE, noise=True),),
        OPEN,
        said=("the baseline does not repeat itself",),
    ),
    Scenario(
        "with one repeat a difference is confirmed",
        (when("--auto-roles", flip=9),),
        FAIL,
        args=("--repeats", "1"),
        said=("twice alike",),
    ),
    Scenario(
        "with one repeat a difference that does not come again is open",
        (when("--auto-roles", nth=[1], flip=9),),
        OPEN,
        args=("--repeats", "1"),
    ),
    # ---- moved beside the residency
    Scenario(
        "swaps moved and the pinned recipe makes it equal",
        (
            when("--auto-roles", without=["--adapt-every"], flip=9, swaps=100),
            when(without=["--auto-roles", "--adapt-every"], swaps=90),
        ),
        OPEN,
        said=("swaps", "--pinned"),
    ),
    Scenario(
        "swaps moved and the pinned recipe does not make it equal",
        (when("--auto-roles", flip=9, swaps=100), when(without=["--auto-roles"], swaps=90)),
        FAIL,
        said=("also with the pinned recipe",),
    ),
    Scenario("pinned from the start", (), PASS, args=("--pinned",)),
    # ---- runs that are no evidence
    Scenario(
        "every run crashes",
        (always(exit=1, ends="before"),),
        OPEN,
        states={"0": ["CRASHED"]},
        said=("the baseline does not start",),
    ),
    Scenario(
        "every run crashes after its dump",
        (always(signal="SIGSEGV"),),
        OPEN,
        states={"0": ["CRASHED", "CRASHED"], "1": ["CRASHED", "CRASHED"]},
        said=("SIGSEGV",),
    ),
    Scenario("seven of eight die after the dump", variants(exit=139), OPEN, said=("SIGSEGV",)),
    Scenario(
        "the baseline is dead, the placements agree",
        (when(without=BASELINE, exit=1, ends="before"),),
        OPEN,
        states={"0": ["CRASHED"]},
        said=("the baseline does not start",),
    ),
    Scenario(
        "one repeat of one variant crashes",
        (when("--auto-roles", nth=[2], signal="SIGABRT"),),
        OPEN,
        states={"6": ["OK", "CRASHED"]},
        results={("repeat", "6"): ["INCONCLUSIVE"]},
    ),
    Scenario(
        "a hang that is deaf",
        (when("--auto-roles", hang=60, deaf=True, ends="before"),),
        OPEN,
        args=FAST,
        states={"6": ["TIMED_OUT"], "1": ["OK", "OK"]},
    ),
    Scenario(
        "a hang after the dump",
        (when("--auto-roles", hang=60),),
        OPEN,
        args=FAST,
        states={"6": ["TIMED_OUT"]},
    ),
    Scenario(
        "a rig that is wedged after a hang",
        (
            when("--auto-roles", hang=60, ends="before"),
            when(without=BASELINE, nth=[2, 3, 4], hang=60, ends="before"),
        ),
        OPEN,
        args=FAST,
        said=("rig wedged",),
    ),
    Scenario(
        "an engine that leaves a child in its own session",
        (when("--auto-roles", child=60),),
        PASS,
        said=("left a process behind",),
    ),
    Scenario(
        "refused early",
        (always(refuses=["--draft-chain-batch"]),),
        PASS,
        states={"4": ["REFUSED"], "5": ["REFUSED"]},
        results={("exact", "4"): ["SKIPPED", "SKIPPED"]},
    ),
    Scenario(
        "refused after the loading",
        (
            when(
                *VARIANT_4,
                ends="before",
                exit=2,
                late=["strata generate: ran out of context at position 155"],
            ),
        ),
        PASS,
        states={"4": ["REFUSED"]},
        said=("ran out of context",),
    ),
    Scenario(
        "refused, strict",
        (always(refuses=["--draft-chain-batch"]),),
        OPEN,
        args=("--strict",),
    ),
    Scenario(
        "flags that the help does not list",
        (),
        PASS,
        build={
            "known": [
                "--pack",
                "--mtp",
                "--spec",
                "--tokens-file",
                "--max-new",
                "--expert-cache",
                "--expert-profile",
                "--main-device",
                "--draft-device",
            ]
        },
        said=("--auto-roles",),
    ),
    Scenario(
        "a forced size that a canonical pack refuses",
        (when("--main-device", "--expert-cache 4400", clip=4100, refuse_size=True),),
        OPEN,
        states={"1f": ["NO_MEMORY"]},
    ),
    Scenario(
        "one token everywhere",
        (always(length=1),),
        OPEN,
        states={"0": ["TRUNCATED", "TRUNCATED"]},
    ),
    Scenario(
        "the end of sequence at once, everywhere",
        (always(ids=[9]),),
        OPEN,
        flags=(*MODEL_FLAGS, "--stop-eos", "--eos-ids", "7,9"),
        results={("exact", "6"): ["INCONCLUSIVE", "INCONCLUSIVE"]},
        said=("too few to tell",),
    ),
    Scenario(
        "exit code 2 after a whole stream",
        (when("--auto-roles", exit=2),),
        OPEN,
        states={"6": ["CRASHED", "CRASHED"]},
    ),
    Scenario(
        "one variant stops early",
        (when("--auto-roles", length=40),),
        FAIL,
        states={"6": ["TRUNCATED", "TRUNCATED"]},
        results={("exact", "6"): ["FAIL", "FAIL"]},
    ),
    Scenario(
        "more ids than asked",
        (when("--auto-roles", length=61),),
        OPEN,
        states={"6": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario(
        "the same id over and over, on both sides",
        (always(fill=[0]),),
        OPEN,
        states={"0": ["DEGENERATE", "DEGENERATE"], "1": ["DEGENERATE", "DEGENERATE"]},
    ),
    Scenario(
        "a cycle of three on one side",
        (when("--auto-roles", fill=[5, 6, 7]),),
        FAIL,
        states={"6": ["DEGENERATE", "DEGENERATE"]},
    ),
    Scenario(
        "no dump",
        (always(dumps=0),),
        OPEN,
        states={"0": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario("two dumps", (when("--auto-roles", dumps=2),), OPEN, states={"6": ["NO_STREAM"] * 2}),
    Scenario(
        "a count line is no stream",
        (always(dumps=0, count_line="output: 60"),),
        OPEN,
        states={"0": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario(
        "a dump cut by foreign text, alike on both sides",
        (always(foreign=" strata generate: 210 lent slots refilled in 101.2 ms\n"),),
        OPEN,
        states={"0": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario(
        "a wrapped dump",
        (when("--auto-roles", wrap=30),),
        OPEN,
        states={"6": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario(
        "the dump on stderr",
        (when("--auto-roles", dump_on="stderr"),),
        OPEN,
        states={"6": ["NO_STREAM", "NO_STREAM"]},
    ),
    Scenario(
        "another prompt was read",
        (when("--auto-roles", echo="other"),),
        OPEN,
        states={"6": ["WRONG_PROMPT", "WRONG_PROMPT"]},
    ),
    Scenario(
        "no prompt is echoed",
        (always(echo="none"),),
        OPEN,
        states={"0": ["WRONG_PROMPT", "WRONG_PROMPT"]},
    ),
    Scenario(
        "sampling left on",
        (always(greedy=False),),
        OPEN,
        states={"0": ["NOT_GREEDY", "NOT_GREEDY"]},
    ),
    Scenario(
        "an error line with exit code 0",
        (
            when(
                "--auto-roles",
                late=[
                    "strata generate: prefill copy_i32: an illegal memory access was encountered"
                ],
            ),
        ),
        OPEN,
        states={"6": ["CRASHED", "CRASHED"]},
        said=("illegal memory access",),
    ),
    Scenario(
        "a CUDA error text in a graph capture",
        (
            when(
                "--auto-roles",
                late=[
                    "strata verify: captured the 4-token window (upload out of memory, sync "
                    "no error)"
                ],
            ),
        ),
        OPEN,
    ),
    Scenario(
        "harmless warnings",
        (
            always(
                late=[
                    "strata generate: WARNING: 186 MiB of VRAM free with everything loaded - LOW: "
                    "requests may stall; add --vram-reserve-mib 1026",
                    "strata mtp: no pinned RAM left for the draft layer's K/V copy; "
                    "keeping it in VRAM",
                ]
            ),
        ),
        PASS,
    ),
    Scenario(
        "logits that are not finite",
        (
            when(
                "--auto-roles",
                late=["strata generate: 12 of 248320 logits are not finite at position 99"],
            ),
        ),
        FAIL,
        states={"6": ["DEGENERATE", "DEGENERATE"]},
    ),
    # ---- effect
    Scenario(
        "the drafter silently stays on the main path",
        (
            when(
                "--main-device",
                workspace_line=False,
                late=[
                    "strata mtp: the RoPE tables on the draft device could not be filled (x); "
                    "the drafter stays on the main path"
                ],
            ),
        ),
        PASS,
        effects={"1": "CONTRADICTED", "6": "PROVEN"},
    ),
    Scenario(
        "every placement ignored: equal, but nothing moved",
        (always(moves=False, workspace_line=False, role_lines=False, slots_apart=4400),),
        OPEN,
        effects={"1": "NOT_SEEN", "2": "CONTRADICTED"},
        args=("--only", "1,2,6"),
        said=("nothing was seen to move",),
    ),
    # ---- residency
    Scenario(
        "no line tells the residency",
        (always(final_line=False, resident_line=False),),
        OPEN,
        said=("residency is unknown",),
    ),
    Scenario(
        "the automatic size moves between repeats",
        (when("--auto-roles", nth=[2], slots_apart=5020),),
        OPEN,
        results={("repeat", "6"): ["INCONCLUSIVE"]},
        said=("5011", "5020"),
    ),
    Scenario(
        "drafts that differ under equal streams are a warning",
        (when("--auto-roles", accepted=12),),
        PASS,
        said=("draft statistics differ",),
    ),
    Scenario(
        "drafts that differ, strict",
        (when("--auto-roles", accepted=12),),
        OPEN,
        args=("--strict",),
    ),
)


def test_no_two_scenarios_have_one_name() -> None:
    """Each rig is told apart by its name, and there are at least 50."""
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names) >= 50


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_rig_is_judged_right(
    scenario: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code, and what the scenario names, is the right answer for that rig."""
    hold(scenario, tmp_path, capsys)
