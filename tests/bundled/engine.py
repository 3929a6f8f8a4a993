"""Runs the bundled engine inside the test's own process, and reads what it printed."""

from __future__ import annotations

import contextlib
import io
import random
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hetero_test.bundled.faults import VARIABLE
from hetero_test.bundled.program import main

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.bundled.build import DemoBuild

NEW_TOKENS = 60


def probe_ids(vocab: int, *, tokens: int = 95, seed: int = 7) -> tuple[int, ...]:
    """The probe that the harness makes by default."""
    drawn = random.Random(seed)
    return tuple(drawn.randrange(1000, max(2500, vocab - 2000)) for _ in range(tokens))


def fault_env(
    name: str, *, argument: str | int | None = None, when: tuple[str, ...] = ()
) -> dict[str, str]:
    """The environment that switches one fault on."""
    value = name if argument is None else f"{name}:{argument}"
    return {VARIABLE: "@".join(filter(None, (value, ",".join(when))))}


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    code: int
    out: str
    err: str

    def found(self, pattern: str) -> tuple[str, ...]:
        """The groups of the only match of a pattern in either output, by line."""
        matches = list(re.finditer(pattern, self.out + self.err, re.MULTILINE))
        assert len(matches) == 1, f"{len(matches)} matches of {pattern!r}"
        return tuple(matches[0].groups())

    def says(self, pattern: str) -> bool:
        """Whether a pattern matches in either output."""
        return re.search(pattern, self.out + self.err, re.MULTILINE) is not None

    @cached_property
    def stream(self) -> tuple[int, ...]:
        """The ids of the only dump."""
        (ids,) = self.found(r"^output  :((?: \d+)*)$")
        return tuple(int(word) for word in ids.split())

    @cached_property
    def prompt(self) -> tuple[int, ...]:
        """The echoed ids."""
        (ids,) = self.found(r"^prompt  :((?: \d+)*)$")
        return tuple(int(word) for word in ids.split())

    @cached_property
    def drafts(self) -> tuple[int, int]:
        """Drafts accepted and offered."""
        accepted, offered = self.found(r"^speculation .* drafts accepted (\d+) of (\d+) \(")
        return int(accepted), int(offered)

    @cached_property
    def rounds(self) -> tuple[int, int]:
        """Windows verified, and the largest that was possible."""
        rounds, window = self.found(r"^speculation +(\d+) rounds of (\d+),")
        return int(rounds), int(window)

    @cached_property
    def slots(self) -> int:
        """The final slots of the main device."""
        (slots,) = self.found(r"^strata generate: expert cache (\d+) slots, ")
        return int(slots)

    @cached_property
    def estimate(self) -> int:
        """The slots that the automatic size promised."""
        (slots,) = self.found(r"^strata generate: expert cache auto: .* -> (\d+) slots$")
        return int(slots)

    @cached_property
    def device(self) -> int:
        """The device that the model was on."""
        (device,) = self.found(r"^strata generate: GPU (\d+): ")
        return int(device)


class Engine:
    """The engine of one build, run with the demo's flags and probe unless told otherwise."""

    def __init__(self, build: DemoBuild) -> None:
        self.build = build
        self.probe = probe_ids(build.vocab)
        self._seen: dict[tuple[str, ...], Run] = {}

    def __call__(self, *flags: str, env: Mapping[str, str] | None = None) -> Run:
        """Run with flags added; equal plain calls are computed once."""
        ids = ",".join(str(token) for token in self.probe)
        argv = (*self.build.model_flags, "--tokens", ids, "--max-new", str(NEW_TOKENS), *flags)
        if env:
            return self.bare(*argv, env=env)
        if flags not in self._seen:
            self._seen[flags] = self.bare(*argv)
        return self._seen[flags]

    def bare(self, *argv: str, env: Mapping[str, str] | None = None) -> Run:
        """Run with these flags alone."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(argv, rig=self.build.build_dir / "rig.toml", environ=env or {})
        return Run(code, out.getvalue(), err.getvalue())

    def without(self, *dropped: str) -> Engine:
        """The same engine without some of the demo's flags (and their values)."""
        flags = self.build.model_flags
        kept = [
            word
            for flag, value in zip(flags[::2], flags[1::2], strict=True)
            if flag not in dropped
            for word in (flag, value)
        ]
        return Engine(replace(self.build, model_flags=tuple(kept)))
