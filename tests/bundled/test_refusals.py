"""Refusals: what is printed on stderr, and the exit code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hetero_test.bundled.flags import USAGE
from tests.bundled.engine import Engine

if TYPE_CHECKING:
    from pathlib import Path

ROLES = ("--main-device", "0", "--draft-device", "1")

REFUSED = [
    (("--tokens-file", "x"), "supply one token input only"),
    (("--tokens", "1,-2"), "malformed token list: invalid token id: expected an integer in [0,"),
    (("--tokens", " ,"), "malformed token list: token list was empty"),
    (("--tokens", "2147483648"), "malformed token list: invalid token id"),
    (("--max-new", "0"), "positive --max-new and --max-context must fit the prompt and generation"),
    (("--max-context", "100"), "--max-context 100 cannot hold 95 prompt + 60 new tokens"),
    (("--kv", "fp8"), "--kv must be fp16, int8, q4_0 or k8v4"),
    (("--spec", "1"), "invalid sampling or resource parameter"),
    (("--spec", "9"), "invalid sampling or resource parameter"),
    (("--top-p", "0"), "invalid sampling or resource parameter"),
    (("--prefill", "-5"), "invalid sampling or resource parameter"),
    (("--layer-split", "2"), "--layer-split K[,K2..]|auto needs --serve, rising K from 2, and"),
    ((*ROLES, "--layer-split", "auto"), "--layer-split K[,K2..]|auto needs --serve"),
    (
        (*ROLES, "--expert-cache-device1", "4"),
        "a remote draft (--main-device 0 --draft-device 1) and the remote expert caches "
        "(--expert-cache-deviceN) both address the second GPU; ",
    ),
    (("--expert-cache-device2", "4"), "--expert-cache-device2 needs --expert-cache-device1"),
    (
        ("--main-device", "2"),
        "--main-device 2 / --draft-device 0: out of range (2 visible GPUs)",
    ),
    (("--draft-device", "-7"), "--main-device 0 / --draft-device 0: out of range"),
    (
        ("--draft-prefill-parallel",),
        "--draft-prefill-parallel is a hetero multi-GPU mode: it needs the roles, "
        "--main-device != --draft-device",
    ),
    (
        ("--auto-roles", "--draft-prefill-parallel"),
        "--draft-prefill-parallel is a hetero multi-GPU mode",
    ),
]


@pytest.mark.parametrize(("flags", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused_flags_are_named_before_loading(
    equal: Engine, flags: tuple[str, ...], message: str
) -> None:
    """Exit code 2, one line on stderr, nothing on stdout, nothing loaded."""
    run = equal(*flags)
    assert run.code == 2
    assert run.out == ""
    assert run.err.startswith(f"strata generate: {message}")
    assert run.err.count("\n") == 1


def test_no_tokens_are_refused_with_the_usage(equal: Engine) -> None:
    """A run needs a prompt."""
    run = equal.bare(*equal.build.model_flags)
    assert run.code == 2
    assert run.err.startswith(
        "strata generate: --tokens is required (this build has no tokenizer; "
    )
    assert run.err.endswith(USAGE + "\n")


def test_an_unknown_argument_prints_the_usage_on_stderr(equal: Engine) -> None:
    """The first line names the argument; stdout stays empty."""
    run = equal("--foo")
    assert run.code == 2
    assert run.out == ""
    assert run.err == f"unknown argument: --foo\n{USAGE}\n"


def test_help_goes_to_stderr_with_exit_code_0(equal: Engine) -> None:
    """``--help`` is no failure, and not on stdout."""
    run = equal.bare("--help")
    assert (run.code, run.out, run.err) == (0, "", f"{USAGE}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 x", "malformed token file: invalid token id: expected an integer in [0, 2147483647]"),
        ("\n", "malformed token file: token list was empty"),
        (None, "cannot open token file "),
    ],
)
def test_a_token_file_is_checked(
    equal: Engine, tmp_path: Path, text: str | None, message: str
) -> None:
    """A file that is missing, empty or malformed is refused."""
    path = tmp_path / "tokens.txt"
    if text is not None:
        path.write_text(text)
    run = equal.bare(*equal.build.model_flags, "--tokens-file", str(path))
    assert run.code == 2
    assert run.err.startswith(f"strata generate: {message}")


def test_a_token_file_may_use_commas_blanks_and_lines(equal: Engine, tmp_path: Path) -> None:
    """The ids of a file give the stream of the same ids as an argument."""
    path = tmp_path / "tokens.txt"
    path.write_text(
        ", ".join(map(str, equal.probe[:50])) + "\n\t" + " ".join(map(str, equal.probe[50:]))
    )
    run = equal.bare(*equal.build.model_flags, "--tokens-file", str(path), "--max-new", "60")
    assert run.prompt == equal.probe
    assert run.stream == equal().stream


@pytest.mark.parametrize("roles", [("--draft-device", "1"), ("--auto-roles",), ROLES])
def test_roles_need_a_drafter(equal: Engine, roles: tuple[str, ...]) -> None:
    """Without a drafter there is nothing to place."""
    run = equal.without("--mtp")(*roles)
    assert run.code == 2
    assert run.err.startswith(
        "strata generate: --draft-device needs the MTP drafter (--mtp and --spec >= 2): "
    )


def test_one_card_has_one_role(one: Engine) -> None:
    """On one card roles beyond it are out of range, and auto roles are refused."""
    assert one(*ROLES).err.endswith("out of range (1 visible GPU)\n")
    assert one("--auto-roles").err.startswith(
        "strata generate: --auto-roles needs at least two visible GPUs (1 found): "
    )
    assert one("--layer-split", "auto").says("one GPU visible, so no split")
    assert one("--layer-split", "auto").stream == one().stream


def test_embeddings_are_required_or_declined(equal: Engine, tmp_path: Path) -> None:
    """Neither file nor refusal of it: exit code 2; ``--no-ple`` goes on."""
    without = equal.without("--native", "--mtp", "--spec")
    assert without().err.startswith("strata generate: --ple-gguf is required; --no-ple ")
    assert without("--no-ple").code == 0
    lonely = equal("--native", str(tmp_path / "shard.gguf"))
    assert lonely.code == 2
    assert lonely.err.startswith("strata generate: --native requires --ple-gguf (")


@pytest.mark.parametrize("missing", ["--native", "--spec", "--prefill"])
def test_a_native_pack_needs_its_flags(native: Engine, missing: str) -> None:
    """A native pack without native paths, window or chunks is refused."""
    run = native.without(missing)("--no-ple")
    assert run.code == 2
    assert re.match(
        r"strata generate: .* is a native \(IQ\) pack: it needs --native SHARD1, --spec T "
        r"\(T >= 2\) and --prefill CHUNK\n",
        run.err,
    )


def test_speculation_without_a_residency_table_is_refused_late(equal: Engine) -> None:
    """The refusal comes once the session is up, still with exit code 2."""
    run = equal.without("--expert-profile")()
    assert run.code == 2
    assert "session is up" in run.err
    assert run.err.splitlines()[-1] == (
        "strata generate: --spec needs the device residency table (--expert-profile, "
        "--expert-cache and the token graph)"
    )


def test_running_out_of_context_is_refused_late(equal: Engine) -> None:
    """The last window needs room too: exit code 2 in the middle of decoding, no dump."""
    run = equal("--max-new", "58", "--max-context", "153")
    assert run.code == 2
    assert re.fullmatch(
        r"strata generate: ran out of context at position 15\d", run.err.splitlines()[-1]
    )
    assert run.out == ""


def test_a_drafter_without_windows_is_ignored_with_a_line(equal: Engine) -> None:
    """``--mtp`` without ``--spec`` is no refusal."""
    run = equal.without("--spec")()
    assert run.code == 0
    assert run.says(r"^strata generate: --mtp is ignored")
    assert not run.says("^mtp ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--max-context", "400000"), r"cudaMalloc\(\d+\) for the session failed"),
        (("--expert-cache", "51"), "mtp: buffers do not fit"),
        (("--pack", "/nowhere"), "cannot open /nowhere/pack.toml"),
        (("--mtp", "/nowhere"), "cannot open /nowhere/dense.txt"),
        (("--expert-profile", "/nowhere"), "cannot open /nowhere"),
    ],
)
def test_failures_at_run_time_have_exit_code_1(
    equal: Engine, flags: tuple[str, ...], message: str
) -> None:
    """What does not fit or cannot be read is a failure, not a refusal."""
    run = equal(*flags)
    assert run.code == 1
    assert re.fullmatch(f"strata generate: {message}", run.err.splitlines()[-1])
    assert run.out == ""


def test_no_memory_left_for_a_cache_is_told(equal: Engine) -> None:
    """An automatic size of 0 is told, and speculation then lacks its table."""
    run = equal("--vram-reserve-mib", "9000")
    assert run.says("-> 0 slots$")
    assert run.says("^strata generate: no VRAM is left for the expert cache: ")
    assert run.code == 2


@pytest.mark.parametrize("line", ["0 1 2", "9 0", "0 16", "x y", "0 0\n0 0"])
def test_a_broken_profile_names_the_line(equal: Engine, tmp_path: Path, line: str) -> None:
    """A profile with a line that is no pair, or a pair twice, is not read."""
    path = tmp_path / "profile.txt"
    path.write_text(f"# pairs\n{line}\n")
    run = equal("--expert-profile", str(path))
    assert run.code == 1
    assert re.search(r"profile\.txt: line [23]", run.err)
