"""llama.cpp, and ik_llama.cpp: one llama-server process a run, asked once over loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.engines.base import Binaries, Survey
from hetero_test.engines.llama_cpp import devices as llama_survey
from hetero_test.engines.llama_cpp import flags as llama_flags
from hetero_test.engines.llama_cpp import model_file, reading
from hetero_test.engines.llama_cpp.client import HOST, Completion, require_client
from hetero_test.engines.llama_cpp.devices import buffer_type
from hetero_test.engines.llama_cpp.model_file import ModelFileFacts, model_facts
from hetero_test.errors import EngineNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.launch.dialogue import Dialogue
    from hetero_test.values.reading import Reading
    from hetero_test.values.run import Device, Probe

_BINARY = "llama-server"
_FOLDERS = (".", "bin", "build/bin", "build", "lib", "bin/Release", "build/bin/Release")
_ENDINGS = ("", ".exe")


class LlamaCpp:
    """How llama-server is found, asked, launched, talked to and read."""

    name = "llama_cpp"
    probe_vocabulary = 32000
    drafter_flags = "-md FILE --spec-type draft-simple"
    verbosity: tuple[str, ...] = ("-lv", "5")
    """Debug lines say which layer is on which device, and which tensors were moved away."""

    def find(self, build_dir: Path) -> Binaries:
        """The server below a build folder.

        Raises:
            EngineNotFoundError: there is none; the message names what was looked for.
        """
        folder = build_dir.absolute()
        places = (folder / place / (_BINARY + end) for place in _FOLDERS for end in _ENDINGS)
        engine = next((path for path in places if path.is_file()), None)
        if engine is None:
            raise EngineNotFoundError(
                f"no binary {_BINARY!r} in {build_dir}",
                hint=f"looked in the folder itself and in {', '.join(_FOLDERS[1:])}; "
                f"build the target {_BINARY}",
            )
        return Binaries(engine=engine, device_tool=None, build_dir=folder)

    def survey(
        self,
        binaries: Binaries,
        flags: Sequence[str],
        *,
        devices: int | None,
        kinds: Mapping[str, str],
        fast: str | None,
    ) -> Survey:
        """Ask the binary for devices and flags; the arguments are those of :class:`Engine`.

        Raises:
            EngineNotFoundError: it cannot be run.
            NothingToCompareError: it cannot list its devices, or a package is missing.
            UsageError: the user names a device that is not there, or a number of devices.
        """
        require_client()
        return llama_survey.survey(binaries, flags, devices=devices, kinds=kinds, fast=fast)

    def has_drafter(self, flags: Sequence[str]) -> bool:
        """Whether the model flags bring a drafter."""
        return llama_flags.has_drafter(flags)

    def has_experts(self, flags: Sequence[str]) -> bool | None:
        """Whether the model is a mixture of experts; None where no file is named."""
        facts = _facts(flags)
        return None if facts is None or facts.experts is None else facts.experts > 0

    def vocabulary(self, flags: Sequence[str]) -> int | None:
        """The model's vocabulary size; None where the flags name no file (``-hf``).

        Raises:
            UsageError: the file cannot be read.
        """
        facts = _facts(flags)
        return None if facts is None else facts.vocabulary

    def placeholders(
        self, survey: Survey, flags: Sequence[str], device: Device | None
    ) -> Mapping[str, str]:
        """Names of devices and of their memory, and numbers of the model's layers.

        ``{fast}`` is the first device and ``{other}`` the second; ``{fast_buffer}``,
        ``{other_buffer}`` and ``{device_buffer}`` are what ``-ot`` calls their memory. For
        numbers of layers see :func:`~hetero_test.engines.llama_cpp.model_file.layer_counts`.
        """
        named = dict(zip(("fast", "other"), survey.devices, strict=False))
        if device is not None:
            named["device"] = device
        out = {name: each.id for name, each in named.items()}
        out |= {f"{n}_buffer": buffer_type(each, survey.devices) for n, each in named.items()}
        facts = _facts(flags)
        return out | model_file.layer_counts(None if facts is None else facts.layers)

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """The user's flags with a variant's placement in place of the user's."""
        return llama_flags.combine(flags, variant_flags)

    def cannot_fit(self, survey: Survey, flags: Sequence[str]) -> str | None:
        """Why a placement cannot fit its devices, from sizes alone; None where it may."""
        return model_file.cannot_fit(survey.devices, flags)

    def command(
        self,
        binaries: Binaries,
        flags: Sequence[str],
        probe: Probe,  # noqa: ARG002 - the prompt goes over the loopback interface
        *,
        probe_file: Path,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """The argument vector of one run; the kernel chooses the port (``--port 0``)."""
        own = ("--host", HOST, "--port", "0", *self.verbosity)
        return (str(binaries.engine), *flags, *own)

    def dialogue(
        self,
        command: Sequence[str],  # noqa: ARG002 - the port is found among the process's sockets
        probe: Probe,
        folder: Path,
    ) -> Dialogue | None:
        """One request, once the server is ready."""
        return Completion(probe=probe, folder=folder)

    def read(self, stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
        """Everything that one run's log and answer say; never raises on what it finds there."""
        return reading.read(stdout, stderr, asked)


class IkLlama(LlamaCpp):
    """The fork ik_llama.cpp, whose server has other flags and prints fewer lines."""

    name = "ik_llama"
    verbosity = ()


def _facts(flags: Sequence[str]) -> ModelFileFacts | None:
    path = llama_flags.value(flags, llama_flags.MODEL)
    return None if path is None else model_facts(path)
