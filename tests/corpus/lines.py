"""The lines of the corpus, and the healthy logs into which they are drawn."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hetero_test.engines.base import Engine, LaunchedCell, Survey
from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.engines.strata.adapter import Strata
from hetero_test.values.outcome import Outcome
from hetero_test.values.run import Probe
from tests.engines.llama_cpp.samples import LOGS
from tests.engines.strata import samples
from tests.judge.factories import stream
from tests.runs import PLAIN

if TYPE_CHECKING:
    from hetero_test.values.reading import Reading

HERE = Path(__file__).parent
OUTCOME: Outcome = PLAIN.outcome
"""A process that ended with success, whatever its log says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the corpus.

    Attributes:
        text: verbatim.
        engine: ``strata``, ``llama_cpp``, ``ik_llama``, or ``any``.
        kind: ``harmless``, or the class of the failure.
        half: ``open`` while the rules were written, or ``kept``.
        borderline: the class can be disputed.
        known: why the line need not weigh: what else tells of it; empty for most.
    """

    id: str
    text: str
    engine: str
    kind: str
    half: str
    source: str
    level: str = ""
    note: str = ""
    borderline: bool = False
    known: str = ""

    @property
    def harmless(self) -> bool:
        return self.kind == "harmless"

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines into whose logs the line is drawn."""
        names = {"ik_llama": ("llama_cpp",), "any": ("strata", "llama_cpp")}
        return names.get(self.engine, (self.engine,))


@cache
def corpus() -> tuple[Line, ...]:
    """Every line, failures first."""
    return tuple(
        Line(kind=entry.pop("class", "harmless"), source=group["source"], **entry)
        for name in ("failures", "harmless")
        for group in tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))["group"]
        for entry in group["lines"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthy:
    """A log of a run without trouble.

    Attributes:
        stdout: lines of standard output.
        stderr: lines of standard error; a drawn line goes in between two of them.
        places: numbers of lines before which a foreign one may stand.
        reply: the answer of a server, or None.
    """

    engine: Engine
    stdout: str
    stderr: tuple[str, ...]
    places: tuple[int, ...]
    reply: bytes | None
    probe: Probe
    flags: tuple[str, ...]

    def read(self, folder: Path, line: str | None, place: int = 0) -> Reading:
        """What the adapter reads from the log with a line in it."""
        told = list(self.stderr)
        if line is not None:
            told.insert(place, line)
        (folder / "stdout").write_text(self.stdout)
        (folder / "stderr").write_text("\n".join(told) + "\n")
        if self.reply is not None:
            (folder / "reply.json").write_bytes(self.reply)
        survey = Survey(devices=(), device_count=None, how="not asked", known_flags=None)
        asked = LaunchedCell(
            flags=self.flags, env={}, probe=self.probe, survey=survey, folder=folder
        )
        return self.engine.read(folder / "stdout", folder / "stderr", asked)


@cache
def healthy(engine: str) -> Healthy:
    """The healthy log of an engine."""
    return _strata() if engine == "strata" else _llama_cpp()


def _strata() -> Healthy:
    told = tuple(samples.STDERR.splitlines())
    ids = stream("A", len(samples.IDS))
    return Healthy(
        engine=Strata(),
        stdout=samples.dump("output  : " + " ".join(map(str, ids))),
        stderr=told,
        # A wrapped message is not broken up.
        places=tuple(n for n, text in enumerate(told) if not text.startswith(" ")),
        reply=None,
        probe=Probe(name="default", ids=samples.PROMPT, max_new=len(samples.IDS)),
        flags=samples.FLAGS,
    )


def _llama_cpp() -> Healthy:
    told = tuple((LOGS / "rpc0.log").read_text().splitlines())
    # While the engine tries what fits, no failure is one; nothing is put there.
    begin = next(n for n, text in enumerate(told) if "fitting params to device memory" in text)
    end = next(n for n, text in enumerate(told) if "fitting params to free memory took" in text)
    return Healthy(
        engine=LlamaCpp(),
        stdout="",
        stderr=told,
        places=(*range(begin + 1), *range(end + 1, len(told))),
        reply=(LOGS / "rpc0.reply.json").read_bytes(),
        probe=Probe(name="default", ids=tuple(range(405, 430)), max_new=8),
        flags=("-m", "m.gguf"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A line of the corpus, read in the log of an engine."""

    line: Line
    engine: str
    reading: Reading


@cache
def drawn(seed: int = 0) -> tuple[Drawn, ...]:
    """Every line in the log of each engine that may print it, at a place of a seed's choice."""
    found = []
    with TemporaryDirectory() as folder:
        for line in corpus():
            for engine in line.engines:
                log = healthy(engine)
                place = random.Random(f"{seed} {line.id} {engine}").choice(log.places)
                reading = log.read(Path(folder), line.text, place)
                found.append(Drawn(line=line, engine=engine, reading=reading))
    return tuple(found)
