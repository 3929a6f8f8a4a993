"""The engine Strata: one process a run, ids in and ids out, no dialogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.engines.base import Binaries, Survey
from hetero_test.engines.strata import devices as strata_devices
from hetero_test.engines.strata import flags as strata_cache
from hetero_test.engines.strata import reading
from hetero_test.errors import EngineNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.launch.dialogue import Dialogue
    from hetero_test.values.reading import Reading
    from hetero_test.values.run import Device, Probe, Run

_FOLDERS = (".", "bin", "Release", "bin/Release", "build", "build/bin")
_ENDINGS = ("", ".exe")


class Strata:
    """How Strata's binaries are found, asked, launched and read."""

    name = "strata"
    probe_vocabulary = 151936
    drafter_flags = "--mtp DIR"

    def find(self, build_dir: Path) -> Binaries:
        """The binaries below a build folder.

        Raises:
            EngineNotFoundError: there is none; the message names what was looked for.
        """
        folder = build_dir.absolute()
        if not folder.is_dir():
            what = "is no folder" if folder.exists() else "does not exist"
            raise EngineNotFoundError(
                f"the build folder {build_dir} {what}",
                hint="give the folder that holds the binary 'strata' with --build-dir",
            )
        engine = _below(folder, "strata")
        if engine is None:
            raise EngineNotFoundError(f"no binary 'strata' in {build_dir}", hint=_hint(folder))
        return Binaries(
            engine=engine, device_tool=_below(folder, "strata-device"), build_dir=folder
        )

    def survey(
        self,
        binaries: Binaries,
        flags: Sequence[str],  # noqa: ARG002 - devices do not depend on the model
        *,
        devices: int | None,
        kinds: Mapping[str, str],
        fast: str | None,
    ) -> Survey:
        """Ask the binaries for devices and flags; a number given by the user rules.

        Raises:
            UsageError: kinds or a fast device are declared, which Strata tells itself.
        """
        if kinds or fast is not None:
            option = "--device-kind" if kinds else "--fast-device"
            raise UsageError(f"{option}: Strata's devices tell what they are")
        return strata_devices.survey(binaries, devices=devices)

    def has_drafter(self, flags: Sequence[str]) -> bool:
        """Whether the model flags bring a drafter."""
        value = strata_cache.last_value(flags, "--mtp")
        return value is not None and not value.startswith("--")

    def has_experts(self, flags: Sequence[str]) -> bool | None:  # noqa: ARG002
        """Every model of Strata is a mixture of experts."""
        return True

    def vocabulary(self, flags: Sequence[str]) -> int | None:  # noqa: ARG002
        """A pack does not tell it in any way that is documented."""
        return None

    def placeholders(
        self,
        survey: Survey,  # noqa: ARG002
        flags: Sequence[str],  # noqa: ARG002
        device: Device | None,
    ) -> Mapping[str, str]:
        """``{device}`` is an ordinal."""
        return {} if device is None else {"device": device.id}

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """One after the other: of a repeated flag the last one counts."""
        return (*flags, *variant_flags)

    def cannot_fit(self, survey: Survey, flags: Sequence[str]) -> str | None:  # noqa: ARG002
        """None: what does not fit on a card stays in memory, and the cache is made smaller."""
        return None

    def command(
        self, binaries: Binaries, flags: Sequence[str], probe: Probe, *, probe_file: Path
    ) -> tuple[str, ...]:
        """The argument vector of one run; of a repeated flag, the last one counts."""
        own = ("--tokens-file", str(probe_file), "--max-new", str(probe.max_new))
        return (str(binaries.engine), *flags, *own)

    def dialogue(self, command: Sequence[str], probe: Probe, folder: Path) -> Dialogue | None:  # noqa: ARG002
        """Nothing: a run ends by itself."""
        return None

    def read(self, stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
        """Everything that one run's output says; never raises on what it finds there."""
        return reading.read(stdout, stderr, asked)

    def force(self, flags: Sequence[str], wanted: Run) -> tuple[str, ...] | None:
        """``flags`` so that the residency of ``wanted`` is forced; None if that cannot be."""
        return strata_cache.force(flags, wanted)

    def size(self, run: Run) -> int | None:
        """Final slots of the main device's expert cache."""
        return strata_cache.slots(run)

    def share(self, flags: Sequence[str], baseline: Run, got: Run) -> tuple[str, ...] | None:
        """``flags`` with one size that both a clipped anchor and the baseline can hold."""
        return strata_cache.share(flags, baseline, got)


def _below(folder: Path, name: str) -> Path | None:
    candidates = (folder / place / (name + ending) for place in _FOLDERS for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def _hint(folder: Path) -> str:
    if _below(folder, "llama-server") is not None:
        return "it holds 'llama-server': use --matrix llama_cpp"
    places = ", ".join(f"{place}/" for place in _FOLDERS[1:])
    return f"looked in the folder itself and in {places}"
