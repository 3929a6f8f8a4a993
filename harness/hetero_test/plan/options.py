"""What is asked of a matrix run: the command line, or a caller from Python, as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from hetero_test.plan import defaults
from hetero_test.values.record import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """One matrix run. What has a default may be left out; the README says more of each.

    Attributes:
        build_dir: folder that holds the engine's binaries.
        out: the run directory, new or empty unless ``resume`` is set.
        model_flags: the engine's own command line, the baseline; never read by a shell.
        matrix: name of a shipped matrix, or path of a TOML file.
        only: ids of variants; if there are any, no others run.
        skip: ids of variants that do not run.
        devices: number of devices; None asks the engine.
        expect_devices: how many devices there must be at least; fewer end the run before any
            launch. None expects nothing, but with one device found and 1 neither given here nor
            as ``devices``, and without ``only``, the matrix is INCONCLUSIVE.
        kinds: (device, kind) pairs, for devices whose kind the engine cannot tell.
        fast_device: which device is the fast one; None lets the engine say.
        max_new: new tokens a run.
        repeats: runs a variant.
        warmup: warm-up runs; None is one from ``defaults.MANY_REPEATS`` repeats on, else none.
        pinned: run with the matrix's recipe against known sources of difference.
        limits: seconds without an end, without any output, and of the whole matrix.
        tokens: number of prompt ids; None takes ``$HETERO_TEST_TOKENS`` or the default, and
            ``seed`` and ``vocab`` likewise.
        tokens_files: prompts as files of ids, in place of a generated one.
        resume: go on with the run directory ``out``.
        strict: INCONCLUSIVE also for an effect that was not seen, or a refused variant.
        predict: what ``hetero-test triage --json`` printed, to stand beside what is measured.
        redact: replace names, paths and addresses in what is meant for pasting.
        argv: the words behind ``hetero-test``, for the report; without any, :func:`command_line`.
    """

    build_dir: Path
    out: Path
    model_flags: tuple[str, ...]
    matrix: str = defaults.MATRIX
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    devices: int | None = None
    expect_devices: int | None = None
    kinds: tuple[tuple[str, str], ...] = ()
    fast_device: str | None = None
    max_new: int = defaults.MAX_NEW
    repeats: int = defaults.REPEATS
    warmup: int | None = None
    pinned: bool = False
    limits: Limits = Limits(run_s=defaults.RUN_S, idle_s=defaults.IDLE_S)
    tokens: int | None = None
    seed: int | None = None
    vocab: int | None = None
    tokens_files: tuple[Path, ...] = ()
    resume: bool = False
    strict: bool = False
    predict: Path | None = None
    redact: bool = True
    argv: tuple[str, ...] = ()


_LIMITS = {"--timeout": "run_s", "--idle-timeout": "idle_s", "--total-timeout": "total_s"}
_OTHER_WORDS = {"kinds": "--device-kind", "tokens_files": "--tokens-file", "redact": "--no-redact"}


def command_line(options: RunOptions) -> tuple[str, ...]:
    """The words behind ``hetero-test`` that ask for the same, without what is the default."""
    words = []
    for field in fields(options):
        value = getattr(options, field.name)
        if value == field.default or field.name in {"model_flags", "limits", "argv"}:
            continue
        word = _OTHER_WORDS.get(field.name, "--" + field.name.replace("_", "-"))
        match field.name, value:
            case _, bool():
                words.append(word)
            case (("only" | "skip"), _):
                words += [word, ",".join(value)]
            case "kinds", _:
                words += [part for pair in value for part in (word, "=".join(pair))]
            case "tokens_files", _:
                words += [part for path in value for part in (word, str(path))]
            case _:
                words += [word, str(value)]
    standard = RunOptions.__dataclass_fields__["limits"].default
    for word, name in _LIMITS.items():
        if (limit := getattr(options.limits, name)) != getattr(standard, name):
            words += [word, str(limit)]
    return (*words, "--", *options.model_flags)
