"""Where the tensors are: the equality key, and what proves a placement."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from hetero_test.engines.base import LaunchedCell, Survey
from hetero_test.engines.llama_cpp import reading as llama_reading
from hetero_test.engines.llama_cpp.amounts import layers_text, memory, memory_text
from hetero_test.engines.llama_cpp.devices import declared
from hetero_test.engines.llama_cpp.log import LlamaLog
from hetero_test.engines.llama_cpp.reader import nothing, read
from hetero_test.engines.llama_cpp.residency import (
    ranges,
    residency,
    sightings,
)
from hetero_test.values.reading import Reading, Residency
from hetero_test.values.run import Device, Probe
from tests.engines.llama_cpp.samples import LOGS, log

DEVICES = tuple(
    Device(id=f"RPC{n}", name=f"127.0.0.1:{50052 + n}", kind=f"RPC{n}") for n in range(2)
)
LIKE = declared(DEVICES, {"RPC0": "CPU", "RPC1": "CPU"})


def where(name: str, devices: tuple[Device, ...] = DEVICES) -> Residency:
    return residency(log(name), devices)


def seen(name: str) -> dict[str, str | None]:
    return {sighting.part: sighting.value for sighting in sightings(log(name), DEVICES)}


@pytest.mark.parametrize("name", ["split", "half", "kv-on-cpu"])
def test_like_devices_have_one_residency(name: str) -> None:
    """Where all devices are of one kind it does not matter which of them holds a tensor."""
    assert where(name, LIKE).equals(where("cpu", LIKE))
    assert not where(name).equals(where("cpu"))


def test_overrides_between_like_devices_do_not_matter() -> None:
    """Experts that -ot moved to a device of the same kind are where they were."""
    assert where("experts-apart", LIKE).equals(where("rpc0", LIKE))
    assert not where("experts-apart").equals(where("rpc0"))


def test_residency_of_another_device_is_another() -> None:
    """Undeclared RPC devices are kinds of their own, so one is not as good as the other."""
    one, other = where("draft-other"), where("draft-swapped")
    assert one.known
    assert not one.equals(other)
    assert one.main_kind != other.main_kind  # so that no anchor is looked for


def test_the_drafter_is_no_part_of_it() -> None:
    """Where drafts are made has no say in what is verified."""
    assert where("draft-other").equals(where("draft-cpu"))


def test_repacking_is_context_and_not_key() -> None:
    """Repacked weights are the same tensors in the same place."""
    assert where("repack").equals(where("no-repack"))


def test_labels_name_ranges_and_roles() -> None:
    """A label says in few words which layers and roles are where."""
    assert where("split").label == (
        "CPU: input; RPC0: layers 0-2, KV 0-2; RPC1: layers 3, output, KV 3"
    )
    assert where("experts-apart").label == (
        "CPU: input; RPC0: layers 0-3, output, KV 0-3; RPC1: experts 0-3"
    )


def test_key_names_every_tensor_that_moved() -> None:
    """Moving two of three expert tensors is another residency than moving all."""
    text = (LOGS / "experts-apart.log").read_text()
    fewer = "\n".join(line for line in text.splitlines() if "ffn_gate_exps" not in line)
    assert not residency(read(io.BytesIO(fewer.encode())), DEVICES).equals(where("experts-apart"))


def test_sizes_stand_in_for_tensors() -> None:
    """Without debug lines bytes by kind of device are the key."""
    facts = dict(where("split-lv4").facts)
    assert facts["RPC0"] == "1.69 MiB of weights, 0.75 MiB of KV"
    assert dict(where("split-lv4", LIKE).facts)["CPU"] == "3.01 MiB of weights, 1.00 MiB of KV"


def test_a_tensor_split_is_a_kind_of_its_own() -> None:
    """Sums within a layer that are spread over devices round as no single device does."""
    assert "tensor split over RPC0 and RPC1: layers 0-3" in where("tensor-split").label
    assert not where("tensor-split", LIKE).equals(where("split", LIKE))


@pytest.mark.parametrize("name", ["no-model", "rpc-down", "unknown-argument", "assert"])
def test_unknown(name: str) -> None:
    """A log in which no model was loaded tells no residency, and unknown equals nothing."""
    assert not where(name).known
    assert not where(name).equals(where(name))
    assert not residency(nothing(), DEVICES).known


def test_tensors_that_a_device_cannot_hold() -> None:
    """Weights that fell back to another kind are part of the key, as far as they are told."""
    text = (LOGS / "rpc0.log").read_text()
    moved = text.replace(
        "tensor 'token_embd.weight' (f32) (and 0 others) cannot be used with preferred buffer "
        "type CPU_REPACK, using CPU instead",
        "tensor 'blk.0.attn_q.weight' (iq3_s) (and 3 others) cannot be used with preferred buffer "
        "type RPC0, using CPU instead",
    )
    found = residency(read(io.BytesIO(moved.encode())), DEVICES)
    assert not found.equals(where("rpc0"))
    assert "blk.0.attn_q.weight and 3 more in CPU, not RPC0" in dict(found.facts).values()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cpu", {"main": "CPU", "feed-forward": "CPU", "attention": "CPU", "kv": "CPU"}),
        ("half", {"main": "CPU+RPC0", "kv": "CPU+RPC0"}),
        ("split", {"main": "RPC0+RPC1", "kv": "RPC0+RPC1"}),
        ("kv-on-cpu", {"main": "RPC0", "kv": "CPU"}),
        (
            "experts-apart",
            {"main": "RPC0+RPC1", "experts": "RPC1", "attention": "RPC0", "kv": "RPC0"},
        ),
        ("draft-other", {"main": "RPC0", "draft": "RPC1"}),
        ("draft-swapped", {"main": "RPC1", "draft": "RPC0"}),
        ("draft-cpu", {"main": "RPC0", "draft": "CPU"}),
        ("draft-unused", {"main": "RPC0", "draft": "nothing drafted"}),
        ("split-lv4", {"main": "RPC0+RPC1", "kv": "RPC0+RPC1", "attention": None}),
    ],
)
def test_sightings(name: str, parts: dict[str, str | None]) -> None:
    """Each part is where buffers are; a drafter that drafts nothing is nowhere."""
    assert {part: seen(name)[part] for part in parts} == parts


def changed(name: str, *changes: tuple[str, str], without: str = "\n") -> LlamaLog:
    """A real log with other words, and without some of its lines."""
    text = (LOGS / f"{name}.log").read_text()
    for one, other in changes:
        assert one in text
        text = text.replace(one, other)
    lines = (line for line in text.splitlines() if without not in line)
    return read(io.BytesIO("\n".join(lines).encode()))


def main_of(log: LlamaLog) -> str | None:
    """Where the main model is seen."""
    return next(s.value for s in sightings(log, DEVICES) if s.part == "main")


def test_the_output_alone_is_no_part_of_the_layers() -> None:
    """A device that got the output and no repeating layer has not taken over its share."""
    layer = "layer   3 assigned to device {},"
    back = (layer.format("RPC0"), layer.format("CPU"))
    assert main_of(changed("half")) == "CPU+RPC0"
    assert layers_text(changed("half"), DEVICES) == "3 of 5 on CPU, 2 of 5 on RPC0"
    assert main_of(changed("half", back)) == "CPU+RPC0 (the output alone)"
    assert layers_text(changed("half", back), DEVICES) == "4 of 5 on CPU, 1 of 5 on RPC0"
    assert layers_text(nothing(), DEVICES) is None


@pytest.mark.parametrize("tensor", ["blk.1.ffn_down.weight", "output.weight"])
def test_all_on_a_device_are_all_weights_but_the_input_embedding(tensor: str) -> None:
    """One tensor that lies elsewhere, by a rule or a variable, makes two places of one."""
    said = "tensor {} (64 MiB q4_0) buffer type overridden to CPU"
    anywhere = "load_tensors: offloading output layer to GPU"
    for name, apart in ((tensor, True), ("token_embd.weight", False)):
        found = main_of(changed("rpc0", (anywhere, f"{said.format(name)}\n{anywhere}")))
        assert (found != "RPC0") is apart
        assert (found or "").startswith("RPC0")


@pytest.mark.parametrize("kept", ["ffn_down_exps", "ffn_up_exps"])
def test_experts_of_which_some_stayed_are_in_two_places(kept: str) -> None:
    """Only what was moved is told: what every feed-forward has, and was not, stayed behind."""
    found = sightings(changed("experts-apart", without=f"{kept}.weight (1 MiB"), DEVICES)
    assert next(s.value for s in found if s.part == "experts") == "RPC0+RPC1"


def test_of_a_model_that_was_loaded_again_the_last_counts() -> None:
    """It is the one that answers."""
    one, other = log("split"), log("rpc0")
    assert one.main is not None
    again = [replace(model, path=one.main.path) for model in other.models]
    both = replace(one, models=(*one.models, *again))
    assert residency(both, DEVICES).equals(where("rpc0"))
    second = replace(one, models=(*one.models, replace(again[0], path="another.gguf")))
    assert residency(second, DEVICES).equals(where("split"))


def reading(log: LlamaLog, folder: Path, **env: str) -> Reading:
    """What is read of a run whose log this is."""
    survey = Survey(devices=DEVICES, device_count=2, how="", known_flags=None)
    probe = Probe(name="p", ids=(1, 2), max_new=4)
    asked = LaunchedCell(flags=(), env=env, probe=probe, survey=survey, folder=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_reading, "_log", lambda _: log)
        return llama_reading.read(folder / "stdout", folder / "stderr", asked)


OTHER = (
    ("127.0.0.1:50053 (", "127.0.0.1:9 ("),
    ("using device RPC1 (127.0.0.1:50053)", "using device RPC1 (127.0.0.1:9)"),
)


@pytest.mark.parametrize("without", ["\n", "common_param:   -"])
def test_another_card_under_a_devices_number_is_unknown(without: str, tmp_path: Path) -> None:
    """A device whose kind is not the listed one is unknown, by the list or the model's lines."""
    same = reading(changed("split", without=without), tmp_path)
    assert same.residency.known
    assert {"RPC0: 127.0.0.1:50052", "RPC1: 127.0.0.1:50053"} <= set(same.devices)

    log = changed("split", *OTHER, without=without)
    other = reading(log, tmp_path)
    assert other.residency.unknown == (
        "the device list changed: RPC1 was 127.0.0.1:50053, now 127.0.0.1:9"
    )
    assert "RPC1: 127.0.0.1:9" in other.devices
    # No mask of this machine gives another machine's device another number.
    assert not reading(log, tmp_path, CUDA_VISIBLE_DEVICES="1").residency.known


def test_devices_that_are_named_before_the_model_are_its_own() -> None:
    """As older builds have it."""
    lines = (LOGS / "split-lv4.log").read_text().splitlines()
    lines.sort(key=lambda line: "using device" not in line)
    main = read(io.BytesIO("\n".join(lines).encode())).main
    assert main is not None
    assert main.using == {"RPC0": "127.0.0.1:50052", "RPC1": "127.0.0.1:50053"}


def test_where_a_card_is_plugged_in_is_no_part_of_its_name(tmp_path: Path) -> None:
    """It stands behind the name, in brackets that a name may have too."""
    for place in ("0000:01:00.0", "unknown id"):
        told = f"using device RPC1 (127.0.0.1:50053) ({place})"
        log = changed(
            "split",
            ("using device RPC1 (127.0.0.1:50053) (unknown id)", told),
            without="common_param:   -",
        )
        found = reading(log, tmp_path)
        assert found.residency.known
        assert "RPC1: 127.0.0.1:50053" in found.devices


@pytest.mark.parametrize(
    ("count", "main"), [("5/5", "RPC0+RPC1"), ("3/5", "CPU+RPC0+RPC1"), ("0/5", "CPU+RPC0+RPC1")]
)
def test_without_debug_lines_the_count_of_layers_tells_what_the_cpu_kept(
    count: str, main: str
) -> None:
    """Its buffer does not: the input embedding is there in any case."""
    log = changed("split-lv4", ("offloaded 5/5 layers", f"offloaded {count} layers"))
    assert next(s.value for s in sightings(log, DEVICES) if s.part == "main") == main


def test_a_layer_without_a_buffer_proves_nothing() -> None:
    """A device that was assigned layers but holds no weights was not used."""
    text = (LOGS / "split.log").read_text()
    without = "\n".join(line for line in text.splitlines() if "50053] model buffer" not in line)
    found = sightings(read(io.BytesIO(without.encode())), DEVICES)
    assert next(s.value for s in found if s.part == "main") == "RPC0"


def test_the_line_that_shows_it_is_quoted() -> None:
    """A sighting quotes the buffer line of its own device."""
    line = next(s.line for s in sightings(log("experts-apart"), DEVICES) if s.part == "experts")
    assert "RPC0[127.0.0.1:50053] model buffer size =    12.00 MiB" in line


def test_memory_by_device() -> None:
    """Sizes are summed by device and use, the draft model's apart."""
    found = memory(log("draft-other"), DEVICES)
    assert found["RPC0", "model"] == 2.63
    assert found["RPC0", "KV"] == 1.0
    assert found["RPC1", "draft model"] == 0.33
    assert memory(log("repack"), DEVICES)["CPU", "model"] == 1.5 + 1.85


def test_memory_in_words() -> None:
    """Weights, KV and compute of each device in the unit of the largest, the draft model apart."""
    sizes = {
        ("CPU", "model"): 0.38,
        ("RPC0", "model"): 20480.0,
        ("RPC0", "KV"): 512.0,
        ("RPC0", "compute"): 164.0,
        ("RPC1", "draft model"): 0.33,
        ("RPC1", "draft KV"): 0.12,
        ("RPC1", "draft compute"): 1.51,
    }
    assert memory_text(sizes) == (
        "CPU 0.38 / 0.00 / 0.00 MiB; RPC0 20.00 / 0.50 / 0.16 GiB; "
        "draft RPC1 0.33 / 0.12 / 1.51 MiB"
    )
    assert memory_text({}) is None


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 7, 9, 10], "0-2+7+9-10")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    """Runs of numbers are written with their ends."""
    assert ranges(numbers) == text


CARDS = tuple(
    Device(id=f"CUDA{n}", name=name, kind=f"CUDA {name}")
    for n, name in enumerate(("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 2070"))
)


class Masked:
    """A model that is all on CUDA0, whichever card that is.

    Args:
        folder: for the log.
        cards: as they were listed.
    """

    def __init__(self, folder: Path, cards: tuple[Device, ...] = CARDS) -> None:
        self._folder = folder
        self._survey = Survey(devices=cards, device_count=2, how="", known_flags=None)

    def __call__(self, name: str | None, mask: str | None) -> Residency:
        """The residency by a log that calls CUDA0 by this name."""
        using = f"using device CUDA0 ({name}) (unknown id) - 7000 MiB free\n"
        (self._folder / "stderr").write_text(
            "loaded meta data with 27 key-value pairs and 39 tensors from m.gguf\n"
            + ("" if name is None else using)
            + "load_tensors:        CUDA0 model buffer size =    10.00 MiB\n"
        )
        asked = LaunchedCell(
            flags=(),
            env={} if mask is None else {"CUDA_VISIBLE_DEVICES": mask},
            probe=Probe(name="p", ids=(1, 2), max_new=4),
            survey=self._survey,
            folder=self._folder,
        )
        read_log = llama_reading.read(self._folder / "stdout", self._folder / "stderr", asked)
        return read_log.residency


def test_behind_a_mask_the_name_in_the_log_tells_the_card(tmp_path: Path) -> None:
    """A mask gives a card another number, so its kind is that of the name that the log gives."""
    on_card = Masked(tmp_path)
    plain, swapped = on_card(CARDS[0].name, None), on_card(CARDS[1].name, "1,0")
    assert on_card(CARDS[0].name, "0,1").equals(plain)
    assert swapped.known
    assert not swapped.equals(plain)
    assert "RTX 2070" in (swapped.main_kind or "")


def test_a_card_that_no_line_names_is_like_itself_behind_one_mask_alone(tmp_path: Path) -> None:
    """Without a name a number behind a mask is no card, whatever was listed under it."""
    on_card = Masked(tmp_path)
    unnamed = on_card(None, "1,0")
    assert unnamed.equals(on_card(None, "1,0"))
    assert not unnamed.equals(on_card(None, "0,1"))
    assert not unnamed.equals(on_card(None, None))


def test_one_name_of_cards_of_several_declared_kinds_tells_no_kind(tmp_path: Path) -> None:
    """Two cards of one name that the user calls different are not told apart by their name."""
    cards = tuple(replace(CARDS[0], id=f"CUDA{n}", kind=f"kind {n}") for n in range(2))
    on_card = Masked(tmp_path, cards)
    assert not on_card(CARDS[0].name, "0").equals(on_card(CARDS[0].name, "1"))
