"""Points: pairs of placements whose speed somebody measured and published.

A file of points is TOML::

    schema = "hetero-test/points/1"

    [[point]]
    id = "X1"
    url = "https://…"                   # where it was measured
    summary = "what was changed, in a few words"
    rig = "the machine"                 # points of one rig share its deviations
    use = "score"                       # or "fit" (only `a`, or only V), or "none" with `missing`
    [point.shape]                       # layers; experts and used for a mixture
    layers = 94
    experts = 128
    used = 8
    [[point.device]]
    id = "CUDA0"
    device_class = "discrete_gpu"       # apu, desktop_cpu, server_cpu, apple
    bandwidth_gb_s = 1792               # data sheet, or { value, origin = "measured", source }
    [point.a]                           # the baseline
    what = "experts of 79 layers on the CPU"
    tok_s = 24.07
    splits = 160
    read = [{ device = "CUDA0", gb = 6.2 }, { device = "CPU", gb = 5.8, experts = true }]
    [point.b]                           # what was tried
    …

The keys of a placement are the fields of `PointPlacement`, those of drafting of `PointDrafting`.
`read` may be left out of both where only drafting differs; then `main_class` says who verifies. A
point whose bytes are only known as shares of the whole says ``shares = true``; then device speeds
come from ``alone_tok_s`` (the speed of all of it on that device) and from `a`. A point without an
absolute speed gives ``measured_ratio`` (b against a). ``quantity = "prefill"`` scores the reading
of a prompt, and both placements then have a ``prefill`` table.

Scored is ln(b/a) with `a` as the measured baseline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from hetero_test.errors import MatrixError
from hetero_test.rig.facts import DeviceClass
from hetero_test.rig.sourced import Origin, Sourced
from hetero_test.triage.cost.drafting import Acceptance
from hetero_test.triage.cost.placement import DeviceSpeeds, Drafting, DraftKind, Placement, Read
from hetero_test.triage.model.bytes import ModelShape

SCHEMA = "hetero-test/points/1"
SHIPPED = Path(__file__).parent / "data"


class Use(StrEnum):
    """What a point is good for."""

    SCORE = "score"
    """Complete: scored, and fitted to when other sources are scored."""
    FIT = "fit"
    """One placement, or costs of batches: fitted to, but without a second speed to score."""
    NONE = "none"
    """Incomplete, or it shows a defect; `missing` says what."""


class Quantity(StrEnum):
    """Which speed `tok_s` is."""

    DECODE = "decode"
    PREFILL = "prefill"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointDevice:
    """A device of a point's rig."""

    id: str
    device_class: DeviceClass
    bandwidth_gb_s: Sourced[float] | None = None
    """GB/s; a measured one is a copy or read test, else the data sheet."""
    alone_tok_s: float | None = None
    """Measured speed of the same model wholly on this device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointDrafting:
    """Speculation in one placement of a point; acceptance in whatever form was published."""

    window: int
    tokens_per_round: float | None = None
    accepted_at: tuple[float, ...] = ()
    predicted: int | None = None
    accepted: int | None = None
    accepted_share: float | None = None
    p: float | None = None
    tokens_doubt: float = 0.03
    """Standard deviation of ln(tokens a round), where only a range was published."""
    kind: DraftKind = DraftKind.OWN_HEAD
    draft_cost: float | None = None
    """r where it was measured or follows from sizes."""
    beta: float | None = None
    """Where another run measured it."""
    verify: Mapping[str, float] = field(default_factory=dict)
    """V by rows, where it was measured."""
    rows: int | None = None
    round_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPrefill:
    """A prompt in the regimes of `cost.prompt`."""

    tokens: int
    ubatch: int
    upload_gb: float = 0.0
    """GB that cross the link once a batch."""
    link_gb_s: float | None = None
    active_parameters_b: float
    """Parameters that compute a token, 1e9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPlacement:
    """One placement and its speed; a key left out is zero or the default of the class."""

    what: str
    tok_s: float | None = None
    read: tuple[Read, ...] = ()
    parallel: bool = False
    splits: float = 0.0
    staged_splits: float = 0.0
    pair_latency_us: float | None = None
    peer: bool = False
    all_reduces: float = 0.0
    link_bytes: float = 0.0
    link_gb_s: float | None = None
    messages: float = 0.0
    round_trip_us: float = 0.0
    drafting: PointDrafting | None = None
    prefill: PointPrefill | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A published measurement; see the module."""

    id: str
    url: str
    summary: str
    use: Use = Use.SCORE
    quantity: Quantity = Quantity.DECODE
    missing: str | None = None
    source: str | None = None
    """Repository or thread; None: from the URL. Points of one source are left out together."""
    rig: str = ""
    date: str | None = None
    trust: str | None = None
    engine: str = "llama.cpp"
    shares: bool = False
    overheads: bool = True
    """False where speeds of devices hold for whole tokens, overheads included."""
    shape: ModelShape = field(default_factory=ModelShape)
    device: tuple[PointDevice, ...] = ()
    main_class: DeviceClass = DeviceClass.DISCRETE_GPU
    experts_on_cpu: bool = False
    a: PointPlacement | None = None
    b: PointPlacement | None = None
    measured_ratio: float | None = None
    verify_measured: Mapping[str, float] = field(default_factory=dict)
    """V by rows of a placement that has no drafting of its own: fitted to."""
    assumed: tuple[str, ...] = ()
    """What was concluded because the source does not say it."""

    @property
    def origin(self) -> str:
        """The repository or thread that this comes from."""
        return self.source or repository(self.url)

    @property
    def place(self) -> str:
        """The rig within its source."""
        return f"{self.origin} {self.rig}"

    @property
    def log_ratio(self) -> float | None:
        """ln(b/a) as measured; None: one of the speeds is not there."""
        if self.measured_ratio is not None:
            return math.log(self.measured_ratio)
        if self.a is None or self.b is None or not (self.a.tok_s and self.b.tok_s):
            return None
        return math.log(self.b.tok_s / self.a.tok_s)

    def placement(self, which: PointPlacement) -> Placement:
        """One of the two as the arithmetic takes it."""
        return Placement(
            devices=tuple(self._device(device) for device in self.device),
            shape=self.shape,
            reads=which.read,
            parallel=which.parallel,
            splits=which.splits,
            staged_splits=which.staged_splits,
            pair_latency_us=which.pair_latency_us,
            peer=which.peer,
            all_reduces=which.all_reduces,
            all_reduce_rule="llama.cpp" if "llama" in self.engine else "other",
            link_bytes=which.link_bytes,
            link_gb_s=which.link_gb_s,
            messages=which.messages,
            round_trip_us=which.round_trip_us,
            overheads=self.overheads and not self.shares,
            drafting=None if which.drafting is None else _drafting(which.drafting),
            main_class=self.main_class,
            experts_on_cpu=self.experts_on_cpu,
        )

    def _device(self, device: PointDevice) -> DeviceSpeeds:
        told = device.bandwidth_gb_s
        copied = told is not None and told.origin is Origin.MEASURED
        value = None if told is None else float(told.value)
        return DeviceSpeeds(
            id=device.id,
            device_class=device.device_class,
            nominal_gb_s=None if copied else value,
            copy_gb_s=value if copied else None,
            alone_tok_s=device.alone_tok_s,
            relative=self.shares and told is None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsFile:
    """A whole file."""

    schema: str
    point: tuple[Point, ...]


def repository(url: str) -> str:
    """Host and the first two parts of the path: a repository, a post, a thread."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if part][:2]
    return "/".join([parts.netloc.removeprefix("www."), *path]) if parts.netloc else url


def read_points(path: Path) -> tuple[Point, ...]:
    """The points of a file, checked.

    Raises:
        MatrixError: the file is not TOML of this form, or a point contradicts itself.
        UsageError: the file cannot be read.
    """
    from hetero_test.rig.facts_toml import FactsFile

    kind = FactsFile(PointsFile, "points file")
    located = kind.open(path)
    read = kind.validate(located, located.data)
    complaints = [
        located.complaint(("point", index), f"{point.id}: {text}")
        for index, point in enumerate(read.point)
        for text in _wrong(point)
    ]
    if read.schema != SCHEMA:
        complaints.insert(0, located.complaint(("schema",), f'"{read.schema}" is not "{SCHEMA}"'))
    if complaints:
        raise MatrixError(tuple(complaints))
    return read.point


@lru_cache(maxsize=1)
def shipped_points() -> tuple[Point, ...]:
    """The calibration points that come with the program."""
    return tuple(point for path in sorted(SHIPPED.glob("*.toml")) for point in read_points(path))


def _wrong(point: Point) -> list[str]:
    """Where a point contradicts itself or lacks something."""
    if point.use is Use.NONE:
        return [] if point.missing else ['use = "none" needs `missing`']
    known = {device.id for device in point.device}
    sides = [side for side in (point.a, point.b) if side is not None]
    found = [
        f"{side.what}: reads on {part.device}, which is no device of this point"
        for side in sides
        for part in side.read
        if part.device not in known
    ]
    for side in sides:
        try:
            point.placement(side)
        except ValueError as error:
            found.append(f"{side.what}: {error}")
    if point.shape.experts and not 0 < point.shape.used <= point.shape.experts:
        found.append(f"shape: {point.shape.used} of {point.shape.experts} experts cannot be")
    if point.use is Use.SCORE and (point.log_ratio is None or point.a is None or point.b is None):
        found.append('use = "score" needs two placements, each with tok_s, or measured_ratio')
    if point.quantity is Quantity.PREFILL and any(side.prefill is None for side in sides):
        found.append('quantity = "prefill" needs a prefill table in each placement')
    if (
        point.use is Use.FIT
        and not point.verify_measured
        and (point.a is None or not point.a.tok_s)
    ):
        found.append('use = "fit" needs a.tok_s or verify_measured')
    return found


def _drafting(told: PointDrafting) -> Drafting:
    acceptance = Acceptance(
        window=told.window,
        tokens_per_round=told.tokens_per_round,
        accepted_at=told.accepted_at,
        predicted=told.predicted,
        accepted=told.accepted,
        accepted_share=told.accepted_share,
        p=told.p,
    )
    return Drafting(
        window=told.window,
        tokens_per_round=acceptance.tokens,
        tokens_sigma=told.tokens_doubt,
        kind=told.kind,
        draft_cost=told.draft_cost,
        beta=told.beta,
        verify={int(rows): cost for rows, cost in told.verify.items()},
        rows=told.rows,
        round_ms=told.round_ms,
    )
