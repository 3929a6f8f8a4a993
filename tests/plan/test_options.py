"""Options as a command line: what a report tells its reader to type."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hetero_test.cli.main import split
from hetero_test.cli.run import add_arguments, run_command
from hetero_test.plan.options import RunOptions, command_line
from hetero_test.values.record import Limits

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
COUNTS = st.integers(1, 500)
SECONDS = st.floats(0.001, 1e6)


def may(strategy: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    """None as well."""
    return st.none() | strategy


@given(
    st.builds(
        RunOptions,
        build_dir=WORDS.map(Path),
        out=WORDS.map(Path),
        model_flags=st.lists(st.text("ab -=$", min_size=1), max_size=3).map(tuple),
        matrix=WORDS,
        only=st.lists(WORDS, max_size=3).map(tuple),
        skip=st.lists(WORDS, max_size=3).map(tuple),
        devices=may(COUNTS),
        kinds=st.lists(st.tuples(WORDS, WORDS), max_size=2).map(tuple),
        fast_device=st.none() | WORDS,
        max_new=COUNTS,
        expect_devices=may(COUNTS),
        repeats=COUNTS,
        warmup=may(COUNTS),
        pinned=st.booleans(),
        limits=st.builds(Limits, run_s=SECONDS, idle_s=SECONDS, total_s=st.none() | SECONDS),
        tokens=may(COUNTS),
        seed=may(COUNTS),
        vocab=may(COUNTS),
        tokens_files=st.lists(WORDS.map(Path), max_size=2).map(tuple),
        resume=st.booleans(),
        strict=st.booleans(),
        predict=st.none() | WORDS.map(Path),
        redact=st.booleans(),
        argv=st.just(()),
    )
)
def test_the_command_line_of_options_asks_for_the_same(options: RunOptions) -> None:
    """Parsed again, the words are the options that they were made of, whatever these are."""
    words = command_line(options)
    own, flags = split(words)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_arguments(parser)
    args = parser.parse_args(own)
    args.own_argv = ()
    assert flags is not None
    command = run_command(args, out=args.out, build_dir=args.build_dir, model_flags=flags)
    assert command.options == replace(options, argv=())
