"""The flags of llama.cpp: what a variant replaces, and what names a drafter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.llama_cpp.flags import MODEL, combine, has_drafter, value

USER = ("-m", "a.gguf", "-ngl", "20", "-ot", "attn=CPU", "-fa", "on", "-devd", "CUDA1", "-nkvo")


def test_a_placement_replaces_the_users() -> None:
    """-ot adds up in the engine, so the user's goes when a variant places the model."""
    assert combine(USER, ("-dev", "CUDA0", "-ngl", "999")) == (
        *("-m", "a.gguf", "-fa", "on", "-devd", "CUDA1"),
        *("-dev", "CUDA0", "-ngl", "999"),
    )


def test_placing_the_drafter_leaves_the_model_where_it_is() -> None:
    """A variant that moves the drafter keeps the user's placement of the model."""
    assert combine(USER, ("-devd", "none")) == (
        *("-m", "a.gguf", "-ngl", "20", "-ot", "attn=CPU", "-fa", "on", "-nkvo"),
        *("-devd", "none"),
    )


def test_other_flags_place_nothing() -> None:
    """A variant with flash attention off keeps all of the user's placement."""
    assert combine(USER, ("-fa", "off")) == (*USER, "-fa", "off")


def test_switches_have_no_value() -> None:
    """What follows -nkvo or -cmoe is no value of theirs."""
    assert combine(("-nkvo", "-m", "a", "-cmoe", "-t", "1"), ("-ngl", "1")) == (
        *("-m", "a", "-t", "1"),
        *("-ngl", "1"),
    )


@given(st.lists(st.text(min_size=1)), st.lists(st.text(min_size=1)))
def test_flags_that_place_nothing_arrive_unchanged(user: list[str], variant: list[str]) -> None:
    """Words that are no placement flags are passed on one by one, in order."""
    words = [word for word in (*user, *variant) if word.startswith("-")]
    if not words:
        assert combine(user, variant) == (*user, *variant)


@pytest.mark.parametrize(
    ("flags", "drafts"),
    [
        ((), False),
        (("-m", "a.gguf"), False),
        (("-md", "d.gguf"), True),
        (("--model-draft", "d.gguf", "--spec-type", "draft-simple"), True),
        (("--spec-type", "draft-mtp"), True),
        (("--spec-type", "mtp:n_max=1"), True),
        (("--spec-type", "none"), False),
        (("--spec-type", "ngram-simple"), False),
    ],
)
def test_drafter(flags: tuple[str, ...], drafts: bool) -> None:
    """A draft model, or heads of the model itself, is a drafter; looking up n-grams is none."""
    assert has_drafter(flags) is drafts


def test_the_last_value_rules() -> None:
    """Of a repeated flag the last one counts, under any of its names."""
    assert value(("-m", "a", "--model", "b"), MODEL) == "b"
    assert value(("-m",), MODEL) is None
    assert value((), MODEL) is None
