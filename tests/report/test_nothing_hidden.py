"""Everything that is not OK is listed, and the full record is in the folds."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from hetero_test.values.reading import CacheSize, Residency, Timings
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import Purpose, RunState
from tests.runs import altered

from .factories import (
    every_state,
    manifest,
    planned,
    run,
    two_cards,
)
from .reading import report, row, rows, section


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.OK])
def test_every_state_is_listed_with_reason_line_and_place(state: RunState) -> None:
    """What is not OK quotes the line that shows it and names the folder."""
    place = list(RunState).index(state)
    text = section(report(every_state()), "Not OK, not compared, not run")

    assert f"- **{state}** variant {place}, run 1, 2: it was {state.lower()}" in text
    assert f"see `runs/V{place}/default-1`\n  `strata generate: line of {state}`" in text


def test_unknown_is_a_dash() -> None:
    """No cell is blank, None, nan or a zero that nobody measured."""
    bare = tuple(
        run(
            name,
            repeat,
            stream=None,
            state=RunState.NO_STREAM,
            reason="no dump",
            exit_code=None,
            residency=Residency(unknown="nothing told"),
            speculation=None,
            timings=Timings(decode_tok_s=float("nan")),
            major_faults=None,
            blocks_read=None,
            version=None,
            lines=(),
            tail=(),
            argv=(),
        )
        for name in "01"
        for repeat in (1, 2)
    )
    empty = manifest(variants=planned()[:2], model=(), started="")
    text = report(Record(manifest=empty, runs=bare, ending=Ending.COMPLETE))

    for line in text.splitlines():
        assert not re.search(r"\|\s*(?:None|nan|-nan|inf)?\s*\|", line)
    assert "None" not in text
    assert "nan" not in text
    assert rows(section(text, "Details"))[1][3:10] == ["–"] * 5 + ["unknown", "–"]


def test_warnings_of_all_sources_are_listed_once() -> None:
    """The judge's, the record's and the manifest's."""
    record = replace(
        two_cards(), warnings=("a", "b"), manifest=manifest(warnings=("b", "another process"))
    )

    text = section(report(record), "Warnings")

    assert text.count("- b\n") == 1
    assert "- another process\n" in text


def test_long_lists_are_folded() -> None:
    """Twenty warnings do not bury what follows; those beyond the eighth are in a fold."""
    record = replace(two_cards(), warnings=tuple(f"number {n}" for n in range(20)))

    text = section(report(record), "Warnings")

    assert "<details><summary>12 more warnings</summary>\n\n- number 8\n" in text


def test_a_degenerate_stream_gets_another_prompt_proposed() -> None:
    """Equal garbage is no exactness."""
    text = section(report(every_state()), "What next")

    assert "try another prompt" in text
    assert "--seed 8 -- " in text


def test_sizes_that_move_get_one_size_proposed() -> None:
    """More residencies than are anchored: the command with one shared size, and no taken --out."""
    names = tuple((str(n), f"placement {n}", ("--main-device", str(n))) for n in range(7))
    runs = tuple(
        run(
            str(n),
            repeat,
            order=n,
            residency=Residency(
                facts=(("slots", 4400 + n),), main_kind="a", label=f"{4400 + n} slots"
            ),
            cache=CacheSize(opened=4400 + n),
            context={"native_pack": False},
        )
        for n in range(7)
        for repeat in (1, 2)
    )
    argv = ("hetero-test", "--out", "x", "--build-dir", "b", "--", "--pack", "p")
    asked = manifest(variants=planned(names), argv=argv, model_flags=("--pack", "p"))

    text = section(report(Record(manifest=asked, runs=runs, ending=Ending.COMPLETE)), "What next")

    assert "`hetero-test --build-dir b -- --pack p --expert-cache 4400`" in text


def test_every_run_has_a_row() -> None:
    """Variant, run, tokens, drafts, residency, md5, exit code and errors."""
    table = rows(section(report(two_cards()), "Details").split("</summary>")[1])

    assert len(table) == 1 + 14
    assert table[1] == [
        "0", "1", "OK", "60", "38 / 62", "2.73", "4.63", "7.22", "I", "`55b8ebc603a0`", "0",
    ]  # fmt: skip


def test_commands_can_be_pasted() -> None:
    """Each distinct command is quoted for a shell, with the environment that was set."""
    record = two_cards()
    odd = ("/b/strata", "--pack", "/p/my pack", "-ot", r"blk\..*=CPU", "--", "é", "")
    runs = tuple(altered(r, argv=odd, env=(("A", "b c"),)) for r in record.runs)

    text = report(replace(record, runs=runs))

    line = next(line for line in text.splitlines() if line.startswith("A="))
    assert shlex.split(line) == ["A=b c", *odd]
    assert text.count(line) == len({r.variant for r in runs})


def test_the_harness_command_is_there() -> None:
    """Reproducible by paste: its own command line stands first."""
    text = section(report(two_cards()), "Details")

    assert "```console\nhetero-test --build-dir /home/alice/strata/build -- --pack " in text


def test_lines_of_the_engine_are_shown_as_printed() -> None:
    """Role, memory and peer lines, once for all variants that printed the same."""
    record = two_cards()
    same = tuple(
        altered(r, lines=("GPU 0:  two  blanks",)) if r.variant in {"1", "3"} else r
        for r in record.runs
    )

    text = section(report(replace(record, runs=same)), "Details")

    assert "\nVariants 1, 3:\n\n```text\nGPU 0:  two  blanks\n```\n" in text
    assert "\nVariant 2:\n\n```text\nstrata generate: role device 0: " in text


def test_extra_runs_have_rows_too() -> None:
    """Warm-ups and re-checks are no repeats, but nothing that ran is left out."""
    extra = run("4p", 1, of="4", purpose=Purpose.RECHECK)
    warm = run("0", 1, purpose=Purpose.WARMUP)
    record = replace(two_cards(), warmup=(warm,), rechecks=(extra,))

    text = section(report(record), "Details")

    assert [row(text, "4p")[1], rows(text)[15][:2]] == ["1 (recheck)", ["0", "1 (warmup)"]]


def test_rig_and_probes_say_where_they_come_from() -> None:
    """How devices were found, and how a prompt was made."""
    text = section(report(two_cards()), "Details")

    assert "found by: strata-device --list-devices\ndevice 0: NVIDIA" in text
    assert "default: 95 tokens, generated, seed 7, 60 new tokens; first ids " in text


def test_what_every_run_inherits_is_shown() -> None:
    """No command line holds it, so the details do."""
    asked = replace(two_cards().manifest, inherited=(("LLAMA_ARG_OVERRIDE_TENSOR", "exps=CPU"),))
    text = section(report(replace(two_cards(), manifest=asked)), "Details")

    assert "inherited by every run: LLAMA_ARG_OVERRIDE_TENSOR=exps=CPU" in text
