"""The notes of each engine: what they are for, and what they must not be taken for."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from time import process_time
from typing import NamedTuple

import pytest

from hetero_test.engines.notes import Notes

ENGINES = ("llama_cpp", "strata")
CALLS = 100_000
SECONDS = 5.0
"""Processor time for that many different lines; about a second on a common machine."""


class Note(NamedTuple):
    """One pattern of a file, and the line that it is for."""

    engine: str
    pattern: str
    example: str


def data_of(engine: str) -> dict[str, object]:
    """The file of an engine as it stands."""
    path = files(f"hetero_test.engines.{engine}") / "notes.toml"
    return tomllib.loads(path.read_text("utf-8"))


def notes_of(engine: str) -> list[Note]:
    """Every note of an engine."""
    groups = data_of(engine)["group"]
    assert isinstance(groups, list)
    return [Note(engine, note["pattern"], note["example"]) for g in groups for note in g["notes"]]


NOTES = {engine: Notes(f"hetero_test.engines.{engine}") for engine in ENGINES}
ALL = [note for engine in ENGINES for note in notes_of(engine)]


def message(note: Note) -> str:
    """The example without what stands before its message."""
    head = data_of(note.engine)["head"]
    assert isinstance(head, str)
    found = re.match(head, note.example)
    return note.example[found.end() if found else 0 :]


def refusals(engine: str) -> list[str]:
    """Texts that say that something failed or was not done."""
    text = (Path(__file__).parent / engine / "refusals.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("note", ALL, ids=lambda note: note.pattern)
def test_example_fits_its_pattern(note: Note) -> None:
    """The line beside a pattern is one that the pattern fits, and the loader knows it."""
    assert re.match(note.pattern, message(note))
    assert NOTES[note.engine].known(note.example)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_line_has_one_pattern(engine: str) -> None:
    """No example is fitted by a second pattern: each pattern is needed and means one message."""
    notes = notes_of(engine)
    patterns = [(note.pattern, re.compile(note.pattern)) for note in notes]
    for note in notes:
        text = message(note)
        others = [
            other
            for other, compiled in patterns
            if other != note.pattern and compiled.match(text) is not None
        ]
        assert not others, (note.example, others)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_pattern_fits_any_trouble(engine: str) -> None:
    """No pattern is so short that the bare words of a failure fit it."""
    patterns = [note.pattern for note in notes_of(engine)]
    assert len(patterns) == len(set(patterns))
    bare = ("", "failed", "error", "fatal error", "invalid value", "ignored", "falling back", "off")
    for pattern in patterns:
        assert not [text for text in bare if re.match(pattern, text)], pattern


@pytest.mark.parametrize(
    ("engine", "text"), [(engine, text) for engine in ENGINES for text in refusals(engine)]
)
def test_refusal_is_no_note(engine: str, text: str) -> None:
    """What says that something failed or was not done is never known, whatever its mark."""
    notes = NOTES[engine]
    assert not notes.known(text)
    assert not notes.known(f"0.01.234.567 W {text}")


@pytest.mark.parametrize("engine", ENGINES)
def test_note_in_the_middle_is_no_note(engine: str) -> None:
    """A note that another line quotes does not make that line known."""
    notes = NOTES[engine]
    for note in notes_of(engine):
        if not note.pattern.startswith((".*", "(?:.*", "(?=.*", r"\s")):
            assert not notes.known(f"fatal trouble here; {note.example}"), note.example


@pytest.mark.parametrize(
    "head",
    [
        "",
        "0.01.234.567 W ",
        "llama_context: ",
        "0.01.234.567 W llama_context: ",
        "WARN [           llama_init] ",
        "srv    load_model: ",
        "slot update_slots: id  0 | task 12 | ",
        "warning: ",
    ],
)
def test_heads_of_llama_cpp(head: str) -> None:
    """A message is known behind every head that the engine's builds put before it."""
    text = "n_ctx_seq (4096) < n_ctx_train (8192) -- the full capacity of the model will not be"
    assert NOTES["llama_cpp"].known(f"{head}{text} utilized")


@pytest.mark.parametrize("engine", ENGINES)
def test_many_lines_take_about_a_second(engine: str) -> None:
    """A log of many different lines is looked at in the time that it takes to read it."""
    notes = NOTES[engine]
    lines = [f"slot update_slots: id  0 | task {place} | some progress" for place in range(CALLS)]
    begin = process_time()
    assert not any(map(notes.known, lines))
    assert process_time() - begin < SECONDS
