"""Loading puts every part on its device, in the engine's order, and tells of each on stderr."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from hetero_test.bundled.arith import Arithmetic
from hetero_test.bundled.cache import ExpertPlaces, automatic_slots, fixed_slots, open_cache
from hetero_test.bundled.drafter import Drafter
from hetero_test.bundled.failures import failed, refused
from hetero_test.bundled.faults import FaultEffect
from hetero_test.bundled.inject import faulty_slots
from hetero_test.bundled.job import ple_beside
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.model import Kernels, Model
from hetero_test.bundled.pack import (
    DRAFTER_FILE,
    DrafterPack,
    Layout,
    Pair,
    read_drafter,
    read_profile,
)
from hetero_test.bundled.weights import make_weights
from hetero_test.bundled.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.cache import Opening
    from hetero_test.bundled.job import Job
    from hetero_test.bundled.rig import EmulatedRig
    from hetero_test.bundled.weights import Weights

VERSION = "0.1.34-reference"
_POLICY = """\
strata generate: the GPU computes the experts in the cache; it rounds differently from the CPU,
                 so a reply can differ slightly from a run without the cache (same quality:
                 bench/results/2026-09-27-cache-parity).
                 {policy}"""
_CANONICAL_SHARE = 0.2
_LINK_SHARE = 0.55
_NO_ROOM_FOR_DRAFTER = "mtp: the 16 experts do not fit in VRAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What decoding needs; ``main`` and ``draft`` are the devices that were really used."""

    model: Model
    drafter: Drafter | None
    drafter_pack: DrafterPack | None
    memory: Memory
    main: int
    draft: int
    pcie_share: int


class Loader:
    """Puts the parts of one run on the devices.

    A fault may move them: ``main`` and ``draft`` are the devices that are really used.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._flags = job.flags
        self._pack = job.pack
        self._devices = job.rig.devices
        self._log = job.log
        self._memory = Memory(job.rig)
        self.main = job.roles.main
        self.draft = job.roles.draft
        if FaultEffect.IGNORE_ROLES in job.faults:
            ignored = job.faults.argument(FaultEffect.IGNORE_ROLES)
            self.main = self.main if ignored == "draft" else 0
            self.draft = self.draft if ignored == "main" else 0
        if FaultEffect.DRAFT_FALLBACK in job.faults:
            self.draft = self.main

    def load(self) -> Loaded:
        """Load everything, after which the session is up.

        Raises:
            EngineStopError: something does not fit, cannot be read, or is refused late.
        """
        share = self._pcie_share()
        self._tell_host()
        self._load_weights()
        ranked = self._read_profile()
        self._tell_embeddings()
        drafter = self._load_drafter()
        device = self._devices[self.main]
        self._log.say(
            f"GPU {self.main}: {device.name}, compute capability "
            f"{device.capability[0]}.{device.capability[1]}"
        )
        weights = self._make_weights()
        held = self._open_caches(ranked, drafter)
        share = share if held[0] else 0
        residency = ExpertPlaces(self._pack, held, pcie_share=share)
        self._tell_session(residency)
        if self._flags.spec >= 2 and (self._flags.expert_profile is None or not residency.resident):
            raise refused(
                "--spec needs the device residency table (--expert-profile, --expert-cache and "
                "the token graph)"
            )
        return Loaded(
            model=self._make_model(weights, residency),
            drafter=self._make_drafter(weights) if drafter else None,
            drafter_pack=drafter,
            memory=self._memory,
            main=self.main,
            draft=self.draft,
            pcie_share=share,
        )

    def _pcie_share(self) -> int:
        """How many of 256 missed experts the main device computes itself."""
        if self._flags.pcie_frac is not None:
            return int(self._flags.pcie_frac * 256 + 0.5)
        if self._pack.layout is Layout.CANONICAL:
            return int(_CANONICAL_SHARE * 256 + 0.5)
        speed = self._devices[self.main].link_gb_s
        share = 0.0 if speed < 4 else min(_LINK_SHARE, max(0.05, _LINK_SHARE * speed / 26))
        if speed >= 20:
            share = _LINK_SHARE
        self._log.say(
            f"PCIe probe: {speed:.1f} GB/s host->device -> pcie_frac {share:.2f} "
            f"(default {_LINK_SHARE:.2f})"
        )
        return int(share * 256 + 0.5)

    def _tell_host(self) -> None:
        if not self._job.rig.host.avx512:
            self._log.say(
                "this CPU has no AVX-512: the expert kernels run on AVX-2 (multi-token for the "
                "i-quant gate/up rows)"
            )

    def _load_weights(self) -> None:
        log, flags, pack, shape = self._log, self._flags, self._pack, self._pack.shape
        if pack.layout is Layout.NATIVE:
            log.say(
                f"native pack: {flags.pack} experts (largest blob {pack.largest_mib:.2f} MB), "
                "token embedding IQ4_XS in mapped host memory (322 MiB)"
            )
        kept = next(kept for kept in KvFormat if kept.flag == flags.kv)
        session = pack.session_mib + int(
            flags.max_context / 1024 * pack.kv_mib_per_1024 * kept.share
        )
        for size, what in ((pack.weights_mib, "weight arena"), (session, "session")):
            self._memory.take(
                self.main, size, otherwise=f"cudaMalloc({size * 2**20}) for the {what} failed"
            )
        served = f" ({4 * shape.layers} canonical tensors skipped: served natively)"
        log.say(
            f"{pack.weights_mib} MiB of weights loaded from {flags.pack}"
            f"{served if flags.native else ''}"
        )
        if flags.native is not None:
            log.say(
                f"{3 * shape.layers} native projection matrices, "
                f"{pack.weights_mib * 0.8:.2f} MiB of weights"
            )

    def _read_profile(self) -> tuple[Pair, ...]:
        shape, path = self._pack.shape, self._flags.expert_profile
        if path is None:
            return tuple(
                (layer, expert) for layer in range(shape.layers) for expert in range(shape.experts)
            )
        ranked = read_profile(Path(path), shape)
        self._log.say(f"profile {path}: {len(ranked)} ranked pairs, built for {shape.pairs} slots")
        return ranked

    def _tell_embeddings(self) -> None:
        flags = self._flags
        if flags.no_ple:
            self._log.say("PLE off (--no-ple)")
            return
        path = flags.ple_gguf or ple_beside(flags.native or "")
        self._log.say(f"PLE on, table {self._pack.shape.vocab} rows of {path}")

    def _load_drafter(self) -> DrafterPack | None:
        flags, log = self._flags, self._log
        if flags.mtp is None:
            return None
        if flags.spec < 2:
            log.say("--mtp is ignored: it drafts for --spec T (T >= 2)")
            return None
        if flags.native is None:
            raise failed("mtp: the drafter needs the native head (--native SHARD1)")
        started = perf_counter()
        pack = read_drafter(Path(flags.mtp))
        seconds = perf_counter() - started
        speed = (Path(flags.mtp) / DRAFTER_FILE).stat().st_size / 2**20 / seconds
        if FaultEffect.OUT_OF_MEMORY in self._job.faults:
            self._memory.take(self.draft, 2**40, otherwise=_NO_ROOM_FOR_DRAFTER)
        self._memory.take(self.draft, pack.loaded_mib, otherwise=_NO_ROOM_FOR_DRAFTER)
        if self.draft != self.main:
            log.mtp("the draft layer's gr workspace runs on the draft device (0.3 MiB)")
        elif FaultEffect.DRAFT_FALLBACK in self._job.faults:
            log.mtp(
                "the RoPE tables on the draft device could not be filled (invalid device "
                "ordinal); the drafter stays on the main path"
            )
        log.mtp(
            f"draft layer loaded, {pack.loaded_mib} MiB of VRAM (experts {pack.experts_mib}, "
            f"dense {pack.dense_mib}), files read in {seconds:.2f} s ({speed:.0f} MiB/s)"
        )
        return pack

    def _make_weights(self) -> Weights:
        started = perf_counter()
        weights = make_weights(self._pack.shape, self._pack.seed)
        seconds = perf_counter() - started
        size = weights.expert_bytes
        self._log.say(f"loaded {size / 2**30:.2f} GiB at {size / 2**30 / seconds:.2f} GiB/s")
        if self._flags.native is not None:
            self._log.say(f"experimental native Q5_K head, {weights.head.size} bytes")
        return weights

    def _open_caches(
        self, ranked: Sequence[Pair], drafter: DrafterPack | None
    ) -> list[tuple[Pair, ...]]:
        """The pairs that the main device holds, then those of each helper device."""
        main = self._open_cache(ranked, drafter)
        held = [main]
        rest = ranked[len(main) :]
        for device, slots in enumerate(self._flags.helper_caches, start=1):
            if not slots:
                break
            opened = fixed_slots(
                self._pack, rest, slots=slots, free_mib=self._memory.free_mib(device)
            )
            self._memory.take(device, opened.size_mib, otherwise="")
            self._log.say(
                f"CUDA{device}: {slots} additional experts, {opened.size_mib / 1024:.2f} GiB; "
                "results return through pinned host rows"
            )
            held.append(opened.held)
            rest = rest[len(opened.held) :]
        return held

    def _open_cache(self, ranked: Sequence[Pair], drafter: DrafterPack | None) -> tuple[Pair, ...]:
        slots = self._flags.expert_cache
        if slots == 0 and self._flags.expert_profile is None:
            return ()
        faults, log = self._job.faults, self._log
        free = self._memory.free_mib(self.main)
        head = drafter.head_mib if drafter and self.draft == self.main else 0
        if slots is None or slots == 0:  # with a profile, 0 means auto
            reserve = self._flags.vram_reserve_mib
            slots = automatic_slots(
                self._pack, free_mib=free, reserve_mib=reserve, head_mib=head
            ) - faults.number(FaultEffect.SHRINK_AUTO)
            log.say(
                f"expert cache auto: {free / 1024:.2f} GiB free, {reserve} MiB reserved "
                f"(+{head} MiB for the draft head) -> {slots} slots"
            )
            if slots < 1:
                log.say("no VRAM is left for the expert cache: the CPU computes every expert")
                return ()
            slots -= faults.number(FaultEffect.ESTIMATE_OFF)
        else:
            slots = faulty_slots(slots, faults)
        opened = open_cache(self._pack, ranked, slots=slots, free_mib=free, head_mib=head)
        self._memory.take(self.main, opened.size_mib, otherwise="ExpertCache: out of memory")
        self._tell_cache(opened)
        return opened.held

    def _tell_cache(self, opened: Opening) -> None:
        profiled = self._flags.expert_profile is not None
        policy = (
            "PROFILE, ranked by routing frequency, no eviction."
            if profiled
            else "FIXED, the first pairs in the pack's order, no eviction."
        )
        self._log.say(
            f"expert cache {opened.slots} slots, {opened.size_mib / 1024:.2f} GiB of VRAM; "
            "policy is"
        )
        self._log.line(_POLICY.format(policy=policy))
        if profiled:
            self._log.say(
                f"pre-filled {len(opened.held)} of {opened.slots} slots from the profile; "
                "slot 0 verified"
            )
        self._log.say("R4 hit path ON - resident experts are computed on the GPU")

    def _tell_session(self, residency: ExpertPlaces) -> None:
        self._log.say("1 expert-pool worker, the host thread")
        self._log.say(f"session is up (engine {VERSION})")
        self._log.say(f"sampling {self._job.sampling}")
        if residency.resident:
            self._log.say(
                f"token graph hit path: {residency.resident} resident experts, decided on the "
                "device"
            )
        if self._flags.spec < 2:
            self._log.say(
                f"token graph captured ({self._pack.shape.layers} layers, one launch per token)"
            )

    def _make_model(self, weights: Weights, residency: ExpertPlaces) -> Model:
        main = Arithmetic(self._devices[self.main].activation_bits)
        helpers = tuple(
            Arithmetic(self._devices[device].activation_bits)
            for device, slots in enumerate(self._flags.helper_caches, start=1)
            if slots
        )
        host = Arithmetic(self._job.rig.host.activation_bits)
        kernels = Kernels(main=main, places=(main, host, *helpers))
        return Model(weights, self._pack.shape, kernels, residency, Work())

    def _make_drafter(self, weights: Weights) -> Drafter:
        arithmetic = Arithmetic(self._devices[self.draft].activation_bits)
        return Drafter(weights, self._pack, arithmetic, capacity=self._job.capacity)


class Memory:
    """What is still free on each device, in MiB."""

    def __init__(self, rig: EmulatedRig) -> None:
        self._free = [device.free_mib for device in rig.devices]

    def free_mib(self, device: int) -> int:
        """What is free on a device now."""
        return self._free[device]

    def take(self, device: int, size_mib: int, *, otherwise: str) -> None:
        """Reserve some of what is free.

        Raises:
            EngineStopError: less than that is free; ``otherwise`` is the message.
        """
        if size_mib > self._free[device]:
            raise failed(otherwise)
        self._free[device] -= size_mib
