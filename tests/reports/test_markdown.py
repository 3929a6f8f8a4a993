"""The report that is pasted into an issue: its ten properties."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from harness.reports.markdown import build
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.conclude import judge
from harness.model import (
    Effect,
    Explanation,
    PlannedVariant,
    Purpose,
    Residency,
    Run,
    RunState,
    Timings,
    Variant,
)
from harness.record import Ending, Pinned, Record
from harness.redact import Redactor, secrets_of

from .factories import (
    every_state,
    flipped,
    hostile,
    manifest,
    planned,
    run,
    slots,
    stream,
    two_cards,
)
from .hostile import ALL_AT_ONCE, worded
from .rendered import RENDERERS, Page, cmark


def report(record: Record, *, redactor: Redactor | None = None) -> str:
    """The report of a record as the judge sees it."""
    text: str = build(record, judge(record), redactor=redactor or Redactor.off())
    return text


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the first table in a text, heading first; escaped pipes stay in their cell."""
    found = [line for line in text.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found]
    return [[cell.strip() for cell in row] for row in cells if not set("".join(row)) <= set("-: ")]


def row(text: str, name: str) -> list[str]:
    """The row of one variant."""
    return next(row for row in rows(text) if row[0].split(" ")[0] == name)


# ---- the verdict ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "start"),
    [
        (two_cards(), "## ✅ PASS — 5 of 5 variants exact (4 at their own residency, "),
        (flipped(two_cards(), "4", 17), "## ❌ FAIL — 1 of 5 variants differs"),
        (Record(manifest=manifest()), "## ⚠️ INCONCLUSIVE — "),
    ],
    ids=["PASS", "FAIL", "INCONCLUSIVE"],
)
def test_the_verdict_comes_first_and_in_words(record: Record, start: str) -> None:
    """The first line carries the word; a sign repeats it."""
    assert report(record).startswith(start)


def test_comparisons_are_counted_second() -> None:
    """The line after the heading counts results, then what the passed ones are made of."""
    line = report(two_cards()).splitlines()[2]

    assert line.startswith(
        "17 PASS, 0 FAIL, 0 INCONCLUSIVE, 1 SKIPPED. 14 runs; passed: 7 repeat, 8 exact, 2 anchor. "
    )


def test_what_is_not_claimed_is_counted_apart() -> None:
    """A placement on another kind of device is shown, but not among the results."""
    record = two_cards()
    other = replace(record.manifest.variants[2].variant, claims=False)
    variants = tuple(
        replace(e, variant=other) if e.variant.id == "2" else e for e in record.manifest.variants
    )
    record = replace(record, manifest=replace(record.manifest, variants=variants))

    text = report(record)

    assert "1 SKIPPED; apart from these, 2 NOT CLAIMED" in text
    assert "- **NOT CLAIMED** variant 2: exact against 0: not claimed to be equal" in text


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending.INTERRUPTED, "**Partial, interrupted: Ctrl-C; 3 of 12 planned runs were made.**"),
        (Ending.RUNNING, "**Not finished yet: 3 of 12 planned runs are in.**"),
        (Ending.WEDGED, "**Partial, rig wedged: Ctrl-C; 3 of 12 planned runs were made.**"),
    ],
)
def test_an_unfinished_matrix_says_so(ending: Ending, said: str) -> None:
    """How far it got stands above the counts, and what was not run is listed."""
    record = replace(two_cards(), runs=two_cards().runs[:3], ending=ending, ending_reason="Ctrl-C")

    text = report(record)

    assert text.splitlines()[2] == said
    assert "- variant 1: 1 of 2 runs not made" in text
    assert "- variant 6: 2 of 2 runs not made" in text


# ---- facts ------------------------------------------------------------------------------------


def test_facts_say_what_was_compared_with_what() -> None:
    """Engine, model, rig and lengths stand in one table, with what makes runs comparable."""
    facts = dict(rows(report(two_cards()))[1:8])

    assert facts["engine"].startswith("strata 0.1.40.3, sha256 `ab12ab12ab12`, 12.0 MiB")
    assert facts["rig"].startswith("2 × NVIDIA GeForce GTX 1080 Ti (11.0 GiB); CPU Intel")
    assert facts["run"].startswith("1 prompt of 95 tokens, 60 new tokens each, greedy; 2 repeats")
    assert facts["comparable"].startswith("runs of one residency")
    assert facts["scope"].startswith("this supports only")


def test_a_pinned_and_strict_matrix_says_so() -> None:
    """Flags that the harness added are no secret."""
    asked = manifest(
        strict=True, pinned=Pinned(flags=("--adapt-every", "0"), asked=True, left_out=("--old",))
    )
    facts = dict(rows(report(replace(two_cards(), manifest=asked)))[1:8])

    assert "strict" in facts["run"]
    assert "`--adapt-every` 0" in facts["run"]
    assert "`--old`" in facts["run"]


# ---- variants ---------------------------------------------------------------------------------


def test_the_first_table_tells_the_effect_of_each_variant() -> None:
    """Variant, placement, effect, verdict, residency and stream; an unknown effect is a dash."""
    table = section(report(two_cards()), "Variants")

    assert rows(table)[0] == ["variant", "placement", "effect", "verdict", "residency", "stream"]
    assert row(table, "0")[2] == "–"
    assert row(table, "1")[2] == "PROVEN: draft 1"
    assert row(table, "2")[2] == "UNOBSERVABLE: leaves no trace"
    assert row(table, "4")[3] == "✅ PASS: exact"
    assert row(table, "1")[5] == "B `65533ba033c5`"


@pytest.mark.parametrize("effect", [Effect.NOT_SEEN, Effect.CONTRADICTED])
def test_an_effect_that_is_not_proven_tells_what_was_wanted(effect: Effect) -> None:
    """The part, where it should be, and where it was seen."""
    record = two_cards()
    runs = tuple(
        replace(
            r,
            effect=effect,
            effect_parts=tuple(replace(p, effect=effect, seen=None) for p in r.effect_parts),
        )
        if r.variant == "4"
        else r
        for r in record.runs
    )

    table = section(report(replace(record, runs=runs)), "Variants")

    assert row(table, "4")[2] == f"{effect}: draft: 1 wanted, nothing seen"


def test_what_an_anchor_proves_is_said() -> None:
    """A variant tied only by its anchor was never compared at its own residency."""
    text = section(report(two_cards()), "Variants")

    assert "- An anchor (1f) runs a variant with the baseline's residency forced" in text
    assert "never compared at their own residency: 1." in text
    assert "leave no trace in the log, so only their streams can be judged: 2." in text


def test_variants_that_were_not_run_say_why() -> None:
    """Nothing is hidden: a variant that cannot run here is listed with the reason."""
    extra = PlannedVariant(
        variant=Variant(id="7", name="one card"), planned=False, why_not="needs at most 1 device"
    )
    refused = PlannedVariant(
        variant=Variant(id="8", name="new"),
        planned=False,
        refused=True,
        why_not="no such flag",
    )
    asked = manifest(variants=(*planned(), extra, refused))

    text = section(report(replace(two_cards(), manifest=asked)), "Not OK, not compared, not run")

    assert "- **SKIPPED** variant 7 (one card): needs at most 1 device" in text
    assert "- **REFUSED** variant 8 (new): no such flag" in text


# ---- streams ----------------------------------------------------------------------------------


def test_streams_are_grouped_by_residency() -> None:
    """Letter, md5, members, and where each parts; only a split within a residency is a defect."""
    table = rows(section(report(flipped(two_cards(), "4", 17)), "Streams by residency"))

    assert [r[1] for r in table[1:]] == ["A", "B", "C"]
    assert table[1][0].startswith("I: 4400 slots on NVIDIA")
    assert table[1][2:] == ["`55b8ebc603a0`", "0 ×2, 2 ×2, 1f ×2", "–"]
    assert table[2][4] == "token 0 against A: another residency, may be rounding"
    assert table[3][3:] == ["4 ×2", "token 17 against B: the same residency"]


def test_a_split_shows_its_index_and_both_continuations() -> None:
    """Equal ids before, then the reference with a minus and the judged run with a plus."""
    text = report(flipped(two_cards(), "4", 17))
    ids = stream(2)

    head, diff = text.split("<details><summary>FAIL: 4 run 1 against 1 run 1, ")[1].split(
        "</summary>\n\n```diff\n"
    )
    lines = diff.split("\n```")[0].splitlines()

    assert head == f"first split at token 17 ({ids[17] + 1} instead of {ids[17]})"
    assert lines[0].endswith(f" {ids[15]} {ids[16]}")
    assert lines[1].split()[:3] == ["-", str(ids[17]), str(ids[18])]
    assert lines[2].split()[:3] == ["+", str(ids[17] + 1), str(ids[18])]


def test_a_prefix_is_called_one() -> None:
    """A stream that only ends earlier is not shown as one that differs."""
    record = two_cards()
    runs = tuple(
        replace(r, state=RunState.TRUNCATED, reason="40 of 60 tokens", stream=stream(2)[:40])
        if r.variant == "4"
        else r
        for r in record.runs
    )

    text = report(replace(record, runs=runs))

    assert "- " + " ".join(map(str, stream(2)[40:72])) in text
    assert "+ (end of the stream)\n# the judged run ends here: a strict prefix" in text


def test_a_known_cause_is_named_and_the_way_out_is_offered() -> None:
    """Cause and log-probabilities stand below the split, the pinned command at the end."""
    record = replace(
        flipped(two_cards(), "4", 17),
        manifest=manifest(pinned=Pinned(flags=("--adapt-every", "0"))),
    )
    judgment = judge(record)
    verdicts = tuple(
        replace(
            v,
            result=type(v.result).INCONCLUSIVE,
            cause="PCIe share (51 against 60)",
            explanation=Explanation(text="the two candidates were 0.01 nat apart"),
        )
        if v.difference is not None
        else v
        for v in judgment.verdicts
    )

    text = build(record, replace(judgment, verdicts=verdicts), redactor=Redactor.off())

    assert "Known cause: PCIe share (51 against 60)." in text
    assert "The two candidates were 0.01 nat apart." in text
    assert "/build --pinned -- --pack " in section(text, "What next")


def test_an_unknown_residency_is_compared_with_nothing() -> None:
    """Its stream is listed, but no split is claimed."""
    record = two_cards()
    runs = tuple(
        replace(r, residency=Residency(unknown="no slots line"), stream=stream(9))
        if r.variant == "4"
        else r
        for r in record.runs
    )

    table = section(report(replace(record, runs=runs)), "Streams by residency")

    assert "| not compared: the residency is unknown |" in table


# ---- times ------------------------------------------------------------------------------------


def test_times_have_median_range_and_number() -> None:
    """The unit is in the heading, n beside the name."""
    table = rows(section(report(two_cards()), "Times"))

    assert table[0][:3] == ["variant (n)", "decode tok/s", "Δ decode"]
    assert table[1] == [
        "0 (2)",
        "7.23 [7.22-7.24]",
        "baseline",
        "17.85 [17.80-17.90]",
        "4.63",
        "12-24, 4096",
    ]


def test_a_change_is_shown_only_beside_an_equal_stream() -> None:
    """Against the baseline where streams are equal, else against the first variant that is."""
    table = section(report(two_cards()), "Times")

    assert row(table, "1")[2] == "not comparable: other stream"
    assert row(table, "2")[2] == "`~`"
    assert row(table, "3")[2] == "`~` (vs 1)"
    assert row(table, "4")[2] == "+8.3 % (vs 1)"
    assert row(table, "1f")[2] == "`~`"


def test_a_stream_that_fails_has_no_change() -> None:
    """A speed beside a wrong text says nothing."""
    table = section(report(flipped(two_cards(), "4", 17)), "Times")

    assert row(table, "4")[2] == "not comparable: other stream"


def test_no_number_is_read_off_a_run_that_is_not_ok() -> None:
    """Times and draft statistics of a crashed run are not shown, nor counted into a median."""
    record = two_cards()
    fast = Timings(decode_tok_s=999.0, prefill_tok_s=999.0, draft_ms_per_round=999.0)
    runs = tuple(
        replace(r, state=RunState.CRASHED, reason="signal", timings=fast)
        if r.variant == "4" or (r.variant == "3" and r.repeat == 2)
        else r
        for r in record.runs
    )

    text = report(replace(record, runs=runs))

    assert "999" not in text
    assert not [r for r in rows(section(text, "Times")) if r[0].startswith("4 ")]
    assert row(section(text, "Times"), "3")[0] == "3 (1)"


def test_prompts_have_tables_of_their_own() -> None:
    """Prompts of other lengths have other times, which are never pooled."""
    record = two_cards()
    probe = record.manifest.probes[0]
    asked = replace(record.manifest, probes=(probe, replace(probe, name="long")))
    more = tuple(replace(r, probe="long", order=r.order + 50) for r in record.runs)

    text = report(replace(record, manifest=asked, runs=(*record.runs, *more)))

    assert "\nProbe default:\n" in text
    assert "\nProbe long:\n" in text
    assert row(section(text, "Variants"), "0")[5].startswith("A / ")


# ---- nothing hidden ---------------------------------------------------------------------------


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
            engine_version=None,
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
    assert rows(section(text, "Details"))[1][3:9] == ["–"] * 4 + ["unknown", "–"]


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
            context={"native_pack": False},
        )
        for n in range(7)
        for repeat in (1, 2)
    )
    argv = ("hetero-test", "--out", "x", "--build-dir", "b", "--", "--pack", "p")
    asked = manifest(variants=planned(names), argv=argv, model_flags=("--pack", "p"))

    text = section(report(Record(manifest=asked, runs=runs, ending=Ending.COMPLETE)), "What next")

    assert "`hetero-test --build-dir b -- --pack p --expert-cache 4400`" in text


# ---- details ----------------------------------------------------------------------------------


def test_every_run_has_a_row() -> None:
    """Variant, run, tokens, drafts, residency, md5, exit code and errors."""
    table = rows(section(report(two_cards()), "Details").split("</summary>")[1])

    assert len(table) == 1 + 14
    assert table[1] == [
        "0", "1", "OK", "60", "38 / 62", "2.73", "4.63", "I", "`55b8ebc603a0`", "0",
    ]  # fmt: skip


def test_commands_can_be_pasted() -> None:
    """Each distinct command is quoted for a shell, with the environment that was set."""
    record = two_cards()
    odd = ("/b/strata", "--pack", "/p/my pack", "-ot", r"blk\..*=CPU", "--", "é", "")
    runs = tuple(replace(r, argv=odd, env=(("A", "b c"),)) for r in record.runs)

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
    text = section(report(two_cards()), "Details")

    assert "Variants 0, 1, 2, 3, 4, 6, 1f:\n\n```text\nstrata generate: role device 0: " in text


def test_rig_and_probes_say_where_they_come_from() -> None:
    """How devices were found, and how a prompt was made."""
    text = section(report(two_cards()), "Details")

    assert "found by: strata-device --list-devices\ndevice 0: NVIDIA" in text
    assert "default: 95 tokens, generated, seed 7, 60 new tokens; first ids " in text


# ---- form -------------------------------------------------------------------------------------


EVERY = pytest.mark.parametrize(
    "record",
    [two_cards(), flipped(two_cards(), "4", 17), every_state(), hostile(ALL_AT_ONCE)],
    ids=["pass", "fail", "states", "hostile"],
)


@EVERY
def test_folds_have_room_around_them(record: Record) -> None:
    """A blank line after each summary and before each end, or tables inside do not render."""
    lines = report(record).splitlines()

    for place, line in enumerate(lines):
        if line.startswith("<details>"):
            assert line.endswith("</summary>")
            assert lines[place + 1] == ""
        if line == "</details>":
            assert lines[place - 1] == ""
            assert lines[place + 1] == ""


@EVERY
def test_visible_tables_are_narrow(record: Record) -> None:
    """At most six columns outside of folds."""
    visible = re.sub(r"<details>.*?</details>", "", report(record), flags=re.DOTALL)

    assert all(len(r) <= 6 for r in rows(visible))


@EVERY
def test_rendering_again_gives_the_same_bytes(record: Record) -> None:
    """No clock, no locale, no order of a set."""
    assert report(record) == report(record)


def test_another_process_gives_the_same_bytes() -> None:
    """Neither hash seed nor locale nor time zone shows."""
    program = (
        "from tests.reports.test_markdown import *; import sys;"
        "sys.stdout.buffer.write(report(hostile(ALL_AT_ONCE)).encode())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed, locale, zone in (("1", "C", "UTC"), ("2", "C.UTF-8", "Asia/Tokyo"))
    }

    assert texts == {report(hostile(ALL_AT_ONCE)).encode()}


# ---- safe to publish --------------------------------------------------------------------------


HARMLESS = "as long a label as those of residencies"


def shape(page: Page) -> list[str]:
    """The elements of a page without the code spans that hold foreign text."""
    return [tag for tag in page.tags if tag not in {"code", "pre"}]


@pytest.mark.parametrize("render", RENDERERS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=worded)
def test_foreign_text_changes_no_element(render: Callable[[str], Page], text: str) -> None:
    """A report full of hostile text has exactly the elements of one full of harmless text."""
    harmless = render(report(hostile(HARMLESS)))

    page = render(report(hostile(f"{HARMLESS} {text} b")))

    assert shape(page) == shape(harmless)
    assert {name for name, _ in page.attributes} <= {"align", "class", "lang", "style"}
    assert page.acting() == []


def test_all_tricks_at_once_change_no_element() -> None:
    """Likewise with every known trick in every field."""
    for render in RENDERERS:
        harmless = render(report(hostile(HARMLESS)))
        assert shape(render(report(hostile(ALL_AT_ONCE)))) == shape(harmless)


def test_nothing_secret_is_published() -> None:
    """Names, folders and addresses are replaced in every part of the report."""
    secret = "alice@rumpelkammer:/home/alice/models/x.gguf 10.0.0.7:50052 --api-key s3cr3t-value"
    record = hostile(secret)
    pairs = secrets_of(
        argv=record.manifest.argv,
        model_flags=("--pack", "/home/alice/models/pack", "--api-key", "s3cr3t-value"),
        env=(),
        build_dir="/home/alice/strata/build",
        out_dir="/home/alice/out",
        home="/home/alice",
        user="alice",
        host="rumpelkammer",
    )

    text = report(record, redactor=Redactor(pairs=pairs))

    for word in ("alice", "rumpelkammer", "/home", "10.0.0.7", "s3cr3t"):
        assert word not in text
    assert "<user>@<host>:<model>/x.gguf <ip-1>:50052 --api-key <secret>" in cmark(text).text


def test_an_invisible_character_does_not_hide_a_name() -> None:
    """A name is found behind colors, too."""
    record = hostile("/home/\x1b[1malice\x1b[0m/x")

    text = report(record, redactor=Redactor(pairs=(("/home/alice", "~"), ("alice", "<user>"))))

    assert "alice" not in text


def test_template_syntax_is_text() -> None:
    """What an engine prints is never rendered as a template."""
    text = report(hostile("{{ 'a' * 3 }} {% raw %}"))

    assert "aaa" not in text
    assert "{{ 'a' * 3 }} {% raw %}" in text


# ---- anything at all --------------------------------------------------------------------------

STREAMS = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    """A run of any variant in any state; an OK one has a stream."""
    state = draw(st.sampled_from(RunState))
    name = draw(st.sampled_from(["0", "1", "2", "1f", "9"]))
    return run(
        name,
        draw(st.integers(1, 3)),
        state=state,
        stream=draw(STREAMS if state is RunState.OK else st.none() | STREAMS),
        residency=draw(st.sampled_from([slots(1), slots(2), Residency(unknown="x")])),
        purpose=Purpose.ANCHOR if name == "1f" else Purpose.ROUND,
        exit_code=draw(st.none() | st.integers(-9, 250)),
        signal=draw(st.none() | st.just("SIGKILL")),
        timings=Timings(decode_tok_s=draw(st.none() | st.floats())),
        effect=draw(st.none() | st.sampled_from(Effect)),
        major_faults=draw(st.none() | st.integers(0, 9)),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(any_run(), max_size=12, unique_by=lambda r: r.key), st.sampled_from(Ending))
def test_any_set_of_runs_can_be_rendered(runs: list[Run], ending: Ending) -> None:
    """Whatever ran, in whatever state: the conclusion's word leads, and it renders."""
    record = Record(manifest=manifest(), runs=tuple(runs), ending=ending)
    judgment = judge(record)

    text = build(record, judgment, redactor=Redactor.off())

    assert re.match(rf"## \S+ {judgment.conclusion} — ", text)
    assert cmark(text).tags[0] == "h2"
