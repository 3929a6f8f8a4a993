"""The adapter and its matrices: placeholders, plans, command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.engines.base import Survey
from hetero_test.engines.llama_cpp.adapter import IkLlama, LlamaCpp
from hetero_test.engines.llama_cpp.devices import buffer_type
from hetero_test.engines.llama_cpp.model_file import layer_counts
from hetero_test.errors import UsageError
from hetero_test.plan.matrix import find
from hetero_test.plan.plan import expand, plan_variants, refuse_owned
from hetero_test.values.run import Device, Probe
from hetero_test.values.variant import Needs, PlannedVariant

GIB = 2**30
CUDA = tuple(
    Device(id=f"CUDA{n}", name="RTX 3090", kind="CUDA RTX 3090", memory_bytes=24 * GIB)
    for n in range(2)
)
VULKAN = Device(id="Vulkan0", name="Radeon", kind="Vulkan Radeon", memory_bytes=96 * GIB)
RPC = Device(id="RPC0", name="10.0.0.1:50052", kind="RPC0", memory_bytes=None)


@pytest.fixture
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dense model and one with experts."""
    tiny = pytest.importorskip("hetero_test.engines.llama_cpp.tiny_models")
    found: dict[str, Path] = tiny.write_models(
        tmp_path_factory.mktemp("models"), ("dense-q4_0", "moe-q4_0")
    )
    return found


def plan(*devices: Device, flags: tuple[str, ...] = ()) -> dict[str, PlannedVariant]:
    """The shipped matrix on a rig."""
    engine, matrix = LlamaCpp(), find("llama_cpp")
    survey = Survey(devices=devices, device_count=len(devices), how="", known_flags=None)
    planned = plan_variants(
        matrix,
        expand(matrix, survey, engine, flags),
        survey,
        drafter=engine.has_drafter(flags),
        experts=engine.has_experts(flags),
    )
    return {entry.variant.id: entry for entry in planned}


def test_two_cards_and_a_moe_model(models: dict[str, Path]) -> None:
    """With two devices, experts and a drafter every placement is planned, but those of dense."""
    flags = ("-m", str(models["moe-q4_0"]), "-md", "d.gguf", "--spec-type", "draft-simple")
    found = plan(*CUDA, flags=flags)
    assert [name for name, entry in found.items() if not entry.planned] == ["ffn-apart", "ffn-cpu"]
    assert found["alone-CUDA1"].variant.flags == ("-dev", "CUDA1", "-ngl", "999")
    assert found["draft-swapped"].variant.effect == (("main", "CUDA1"), ("draft", "CUDA0"))
    assert found["half"].variant.flags == ("-dev", "CUDA0", "-ngl", "3")
    assert "half of the layers (3 of 5, the output being one)" in found["half"].variant.name
    assert found["split31"].variant.flags[-1] == "3,2"


@pytest.mark.parametrize("layers", range(2, 100))
def test_both_sides_of_a_split_have_a_repeating_layer(layers: int) -> None:
    """The output is the last layer, so what ends with it needs one more."""
    counts = layer_counts(layers)
    moved = int(counts["half_layers"])
    assert 2 <= moved <= layers
    assert abs((moved - 1) - (layers - moved + 1)) <= 1
    first, last = map(int, counts["three_to_one"].split(","))
    assert first >= 1
    assert last >= 2
    assert first + last == int(counts["all_layers"]) == layers + 1
    if layers > 6:
        assert abs(first - 3 * last) <= 2


def test_a_model_that_cannot_be_parted_is_not() -> None:
    """Of one layer there is no half; where no file tells, 3:1 is what the flags say."""
    assert layer_counts(1) == layer_counts(None) == {"three_to_one": "3,1"}


def test_dense_model_without_drafter(models: dict[str, Path]) -> None:
    """Experts and drafters are needed by what moves them, and the reason is told."""
    found = plan(CUDA[0], VULKAN, flags=("-m", str(models["dense-q4_0"])))
    assert found["experts-apart"].why_not == "needs a model with experts"
    assert found["draft-other"].why_not == "needs a drafter"
    assert found["ffn-apart"].planned
    assert found["split"].variant.flags[1] == "CUDA0,Vulkan0"


def test_buffers_of_rpc_devices(models: dict[str, Path]) -> None:
    """-ot is given the name of a device's memory, which for RPC is not the device's."""
    found = plan(CUDA[0], RPC, flags=("-m", str(models["moe-q4_0"])))
    rule = found["experts-apart"].variant.flags[-1]
    assert rule.endswith("=RPC0[10.0.0.1:50052]")
    assert "," not in rule  # a comma begins another rule
    assert buffer_type(CUDA[0], CUDA) == "CUDA0"


def test_one_card(models: dict[str, Path]) -> None:
    """With one device what needs a second is left out for that reason."""
    found = plan(VULKAN, flags=("-m", str(models["moe-q4_0"])))
    assert found["experts-cpu"].planned
    assert found["split"].few_devices
    assert "at least 2 devices" in (found["split"].why_not or "")


def test_no_card(models: dict[str, Path]) -> None:
    """Without an accelerator nothing can be placed, the CPU's variant included."""
    found = plan(flags=("-m", str(models["moe-q4_0"])))
    assert [name for name, entry in found.items() if entry.planned] == ["0"]


def test_vocabulary_comes_from_the_model(models: dict[str, Path]) -> None:
    """It is read from the file; where no file is named it is not known."""
    engine = LlamaCpp()
    assert engine.vocabulary(("-m", str(models["moe-q4_0"]))) == 768
    assert engine.has_experts(("-m", str(models["moe-q4_0"]))) is True
    assert engine.has_experts(("-m", str(models["dense-q4_0"]))) is False
    assert engine.vocabulary(("-hf", "user/model")) is None
    assert engine.has_experts(()) is None


@pytest.mark.parametrize("content", [None, b"", b"GGUF", b"not a model at all"])
def test_model_that_cannot_be_read(content: bytes | None, tmp_path: Path) -> None:
    """A missing or broken model file is told before anything is launched."""
    path = tmp_path / "broken.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"broken\.gguf"):
        LlamaCpp().vocabulary(("-m", str(path)))


def test_command(build: Path) -> None:
    """The user's flags come unchanged, the kernel chooses the port, and debug lines are on."""
    engine = LlamaCpp()
    flags = ("-m", "/p/my model", "-ot", r"blk\..*=CPU", "--", "é")
    probe = Probe(name="default", ids=(1,), max_new=1)
    command = engine.command(engine.find(build), flags, probe, probe_file=Path("ids"))
    assert command[1 : len(flags) + 1] == flags
    assert command[len(flags) + 1 :] == ("--host", "127.0.0.1", "--port", "0", "-lv", "5")


@pytest.mark.parametrize("flag", ["--port", "--temp", "-n", "-lv", "--api-key", "--seed"])
def test_owned_flags(flag: str) -> None:
    """Where the server listens, what it is asked and what it logs are not the user's to set."""
    with pytest.raises(UsageError, match=f"{flag} after --"):
        refuse_owned(("-m", "a.gguf", flag, "1"), find("llama_cpp"))


def test_forks_matrix() -> None:
    """ik_llama.cpp's own flags are there, and it is said that it was not run."""
    matrix = find("ik_llama")
    words = {word for variant in matrix.variants for word in variant.flags}
    assert {"graph", "-rtr", "-fmoe", "mtp:n_max=1"} <= words
    assert matrix.note is not None
    assert "not run" in matrix.note
    assert IkLlama().name == matrix.engine == "ik_llama"


def test_what_rounds_otherwise_by_design_is_not_claimed() -> None:
    """Splitting a graph, repacking and fusing change the order of sums."""
    claims = {variant.id: variant.claims for variant in find("ik_llama").variants}
    assert [name for name, claimed in claims.items() if not claimed] == [
        *("graph", "experts-cpu-rtr", "fused"),
    ]


def test_every_variant_needs_what_it_names() -> None:
    """A variant that names the second device needs two, so that the reason is told well."""
    for name in ("llama_cpp", "ik_llama"):
        for variant in find(name).variants:
            words = " ".join((*variant.flags, variant.name))
            if "{other" in words:
                assert variant.needs.devices == (">=", 2), variant.id
            elif "draft" in variant.id:
                assert variant.needs != Needs(), variant.id


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("-dev", "CUDA0", "-ngl", "999"), "1.87 MiB of weights, and CUDA0 has 1 MiB"),
        (("-dev", "CUDA0", "-ngl", "all"), "1.87 MiB of weights, and CUDA0 has 1 MiB"),
        (("-dev", "CUDA0", "-ngl", "5"), "1.87 MiB of weights, and CUDA0 has 1 MiB"),
        (("-dev", "CUDA0", "-ngl", "4"), None),
        (("-dev", "CUDA0,CUDA1", "-ngl", "999"), None),
        (("-dev", "CUDA0", "-ngl", "999", "-ot", "exps=CPU"), None),
        (("-dev", "CUDA0", "-ngl", "999", "-cmoe"), None),
        (("-dev", "CUDA0"), None),
        (("-ngl", "999"), None),
        (("-dev", "none"), None),
        (("-dev", "CUDA7", "-ngl", "999"), None),
    ],
)
def test_what_cannot_fit(flags: tuple[str, ...], why: str | None, models: dict[str, Path]) -> None:
    """Only what is certain is said: all weights on named devices that are too small for them."""
    small = tuple(
        Device(id=f"CUDA{n}", name="tiny", kind="CUDA tiny", memory_bytes=2**20) for n in range(2)
    )
    survey = Survey(devices=small, device_count=2, how="", known_flags=None)
    given = ("-m", str(models["moe-q4_0"]), *flags)
    assert LlamaCpp().cannot_fit(survey, given) == why


def test_what_cannot_fit_is_not_launched(models: dict[str, Path]) -> None:
    """The plan leaves out what cannot fit, and says NO_MEMORY with the numbers."""
    engine, matrix = LlamaCpp(), find("llama_cpp")
    small = (Device(id="CUDA0", name="tiny", kind="CUDA tiny", memory_bytes=2**20), CUDA[1])
    survey = Survey(devices=small, device_count=2, how="", known_flags=None)
    flags = ("-m", str(models["moe-q4_0"]))
    planned = plan_variants(
        matrix,
        expand(matrix, survey, engine, flags),
        survey,
        drafter=False,
        cannot_fit=lambda v: engine.cannot_fit(survey, engine.combine(flags, v.flags)),
    )
    found = {entry.variant.id: entry for entry in planned}
    assert found["alone-CUDA0"].why_not == ("NO_MEMORY: 1.87 MiB of weights, and CUDA0 has 1 MiB")
    assert not found["alone-CUDA0"].planned
    assert found["alone-CUDA1"].planned
    assert found["split"].planned
