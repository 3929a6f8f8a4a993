"""A run is made of its parts, and says nothing of its own."""

from __future__ import annotations

from dataclasses import fields, replace
from hashlib import md5

import pytest

from hetero_test.values import run as values_run
from hetero_test.values.outcome import Outcome
from hetero_test.values.reading import Factor, Reading, differing
from hetero_test.values.run import Cell, Probe, RunState, StateFinding, stream_md5
from tests.runs import PLAIN, altered, made


def test_no_fact_stands_in_two_parts() -> None:
    """One fact is written once, so a flat document of all parts loses none of them."""
    names = [each.name for part in (Cell, Outcome, Reading, StateFinding) for each in fields(part)]

    assert len(names) == len(set(names))


def test_a_stream_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a judge, a document and a report ask."""
    hashed: list[tuple[int, ...]] = []

    def counted(ids: tuple[int, ...]) -> str:
        hashed.append(ids)
        return stream_md5(ids)

    monkeypatch.setattr(values_run, "stream_md5", counted)
    run = made(stream=(1, 2, 3))

    assert {run.md5 for _ in range(5)} == {stream_md5((1, 2, 3))}
    assert hashed == [(1, 2, 3)]


def test_the_hash_is_that_of_earlier_reports() -> None:
    """Of the decimal ids joined by commas; without a stream there is none."""
    assert made(stream=(1, 2, 3)).md5 == "55b84a9d317184fe61224bfb4a060fb0"
    assert made(stream=()).md5 == "d41d8cd98f00b204e9800998ecf8427e"
    assert made(stream=None).md5 is None


def test_a_system_that_allows_md5_for_no_secret_can_hash_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the rules of FIPS hold, md5 is there for those who say what it is not used for."""

    def strict(text: bytes, *, usedforsecurity: bool = True) -> object:
        assert not usedforsecurity
        return md5(text, usedforsecurity=False)

    monkeypatch.setattr(values_run, "md5", strict)

    assert stream_md5((1, 2, 3)) == "55b84a9d317184fe61224bfb4a060fb0"


def test_a_prompt_is_written_as_ids_with_blanks_between() -> None:
    """One line, which the engine reads as a file of token ids."""
    assert Probe(name="a", ids=(9, 10, 11), max_new=4).text == "9 10 11\n"


def test_another_stream_has_another_hash() -> None:
    """What was computed for a run does not go over to one that is made of it."""
    run = made(stream=(1, 2, 3))
    assert run.md5 is not None

    assert altered(run, stream=(1, 2, 4)).md5 == stream_md5((1, 2, 4))
    assert altered(run, stream=None).md5 is None


def test_what_a_process_left_behind_is_a_warning_of_its_run() -> None:
    """Behind what the log warns of, and without pids, which are other ones in every run."""
    run = made(leftovers=("pid 12: worker", "pid 13: worker"), warnings=("slow",))

    assert run.warnings == (
        "slow",
        "the engine left 2 processes behind, ended by the harness: worker",
    )
    assert made(leftovers=("pid 12: helper",)).warnings == (
        "the engine left a process behind, ended by the harness: helper",
    )
    assert PLAIN.warnings == ()


def factor(name: str, value: int | None) -> Factor:
    """A factor whose words are its name."""
    return Factor(name=name, value=value, words=name)


def test_factors_differ_by_name_and_value() -> None:
    """In whatever order they were handed over; what one side does not tell is unknown there."""
    one = (factor("a", 1), factor("b", 2), factor("c", None))
    other = (factor("b", 3), factor("a", 1), factor("d", 4))

    assert list(differing(one, other)) == [("b", 2, 3), ("d", None, 4)]
    assert list(differing(one, one)) == []


def test_all_that_is_known_beside_the_residency_is_recorded() -> None:
    """By the name that an engine gave it, whatever part of the reading holds it."""
    reading = Reading(movers=(factor("a", 1),), causes=(factor("b", 2),), context={"c": 3})

    assert {name: reading.recorded[name] for name in "abc"} == {"a": 1, "b": 2, "c": 3}
    assert reading.recorded["main_device"] is None


@pytest.mark.parametrize(
    ("stream", "ended", "state", "why"),
    [
        ((1, 2), True, RunState.OK, "end of sequence"),
        ((1, 2), False, RunState.OK, "length"),
        ((1, 2), False, RunState.TRUNCATED, None),
        (None, False, RunState.NO_STREAM, None),
    ],
)
def test_a_stream_ends_for_a_reason(
    stream: tuple[int, ...] | None, ended: bool, state: RunState, why: str | None
) -> None:
    """The end of a sequence is reported, the length is what was asked for, a cut has no reason."""
    reading = replace(PLAIN.reading, stream=stream, end_of_sequence=ended)
    run = replace(PLAIN, reading=reading, finding=StateFinding(state=state))
    assert run.stop_reason == why
