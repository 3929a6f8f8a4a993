"""Hazards: each is a check with evidence, or not checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hetero_test.rig.facts import Holder, LinkFacts, LinkState, PairFacts
from hetero_test.rig.sourced import measured
from hetero_test.triage.answer.hazard import Hazard, State
from hetero_test.triage.answer.hazards_model import build_options, model_hazards
from hetero_test.triage.answer.hazards_rig import rig_hazards
from hetero_test.triage.model.facts import Completeness, Role, RoleBytes
from hetero_test.triage.options.question import Speeds
from tests.triage.rigs import GIB, card, cpu, dense, question, rig, strix

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.triage.options.question import TriageQuestion


def found(asked: TriageQuestion, start: str) -> Hazard:
    """The one hazard whose name begins so."""
    every = [*rig_hazards(asked), *model_hazards(asked, asked.sizes_of(asked.model))]
    (hazard,) = [hazard for hazard in every if hazard.name.startswith(start)]
    return hazard


def test_every_hazard_has_evidence_or_says_how_to_check() -> None:
    """No state without its ground."""
    asked = question(dense(), strix())
    every = [*rig_hazards(asked), *model_hazards(asked, asked.sizes_of(asked.model))]
    assert all(hazard.evidence for hazard in every)
    assert {hazard.state for hazard in every} == set(State)


def test_a_device_that_was_never_measured_alone_is_a_hazard() -> None:
    """A new backend's first measurement is that device alone."""
    asked = question(dense(), rig(card(), cpu()))
    assert found(asked, "CUDA0 alone").state is State.PRESENT
    told = replace(asked, baselines={"CUDA0": Speeds(decode_tok_s=40.0)})
    assert found(told, "CUDA0 alone").state is State.ABSENT


def test_other_work_and_services_are_named() -> None:
    """What holds the fast device, and which unit would start again."""
    busy = replace(
        card(), held_by=(Holder(pid=7, name="llama-server", source="nvml", unit="llm.service"),)
    )
    asked = question(dense(), rig(busy, cpu()))
    assert "llama-server (7)" in found(asked, "CUDA0 serves").evidence
    assert "mask llm.service" in found(asked, "a service").advice
    idle = question(dense(), rig(replace(card(), held_by=()), cpu()))
    assert found(idle, "CUDA0 serves").state is State.ABSENT
    assert found(idle, "a service").state is State.ABSENT
    unseen = question(dense(), rig(card(), cpu()))
    assert found(unseen, "CUDA0 serves").state is State.NOT_CHECKED
    working = replace(card(), held_by=(), utilization_percent=measured(60.0, "nvml"))
    assert found(question(dense(), rig(working)), "CUDA0 serves").state is State.PRESENT


def test_links_are_checked_for_idling_and_width() -> None:
    """An idle link downshifts; a card in a narrow slot says so with its bottleneck."""
    link = LinkFacts(
        gen=measured(4, "sysfs"),
        width=measured(4, "sysfs"),
        max_width=measured(16, "sysfs"),
        gb_s=measured(7.88, "sysfs"),
        state=measured(LinkState.IDLE, "sysfs"),
        bottleneck=measured("0000:00:01.1", "sysfs"),
    )
    asked = question(dense(), rig(replace(card(), link=link), cpu()))
    assert found(asked, "the link of CUDA0 was read").state is State.PRESENT
    narrow = found(asked, "the link of CUDA0 is narrower")
    assert narrow.state is State.PRESENT
    assert "0000:00:01.1" in narrow.evidence
    loaded = replace(link, state=measured(LinkState.UNDER_LOAD, "x"), max_width=None)
    wide = question(dense(), rig(replace(card(), link=loaded), cpu()))
    assert found(wide, "the link of CUDA0 was read").state is State.ABSENT
    assert found(wide, "the link of CUDA0 is narrower").state is State.ABSENT


def test_an_integrated_gpu_is_told_to_have_no_memory_of_its_own() -> None:
    """Carve-out, aperture and system memory stand beside each other; its link is not looked at."""
    asked = question(dense(), strix())
    hazard = found(asked, "ROCm0 has no memory")
    assert hazard.state is State.PRESENT
    assert "aperture" in hazard.evidence
    assert not [h for h in rig_hazards(asked) if h.name.startswith("the link of ROCm0")]
    unknown = question(dense(), rig(replace(card(), pool=None)))
    assert found(unknown, "CUDA0 has no memory").state is State.NOT_CHECKED


@pytest.mark.parametrize(
    ("access", "state"),
    [(None, State.NOT_CHECKED), (True, State.ABSENT), (False, State.PRESENT)],
)
def test_peer_access_is_checked_between_cards(access: bool | None, state: State) -> None:
    """Without it each copy goes through the host."""
    pair = PairFacts(
        a="CUDA0", b="CUDA1", peer_access=None if access is None else measured(access, "driver")
    )
    asked = question(dense(), rig(card(), card("CUDA1"), links=(pair,)))
    assert found(asked, "CUDA0 and CUDA1 have no peer").state is state


def test_memory_that_is_not_told_is_a_hazard() -> None:
    """GB10 and Jetson report N/A."""
    asked = question(dense(), rig(replace(card(), memory_bytes=None)))
    assert found(asked, "CUDA0 does not tell").state is State.PRESENT


def test_a_model_larger_than_memory_pages() -> None:
    """Against what is available, and against the control group's limit."""
    small = question(dense(), rig(card(), cpu(), gib=8))
    assert found(small, "the model is larger").state is State.PRESENT
    limited = replace(rig(card(), cpu()), memory_limit_bytes=measured(8 * GIB, "cgroup"))
    assert found(question(dense(), limited), "a memory limit").state is State.PRESENT
    roomy = replace(rig(card(), cpu()), memory_limit_bytes=measured(64 * GIB, "cgroup"))
    assert found(question(dense(), roomy), "a memory limit").state is State.ABSENT
    unknown = replace(rig(card()), memory_bytes=None)
    assert found(question(dense(), unknown), "the model is larger").state is State.NOT_CHECKED


def test_sidecar_tables_and_missing_shards_are_told() -> None:
    """Tables stay on the host; bytes that were derived are no measurement."""
    table = RoleBytes(role=Role.SIDECAR, size_bytes=4 * GIB, quantization="Q8_0")
    model = replace(
        dense(),
        tables=(table,),
        completeness=Completeness.DERIVED,
        missing_shards=("x-00002.gguf",),
    )
    asked = question(model, rig(card(), cpu()))
    assert "4.0 GiB" in found(asked, "tables stay").evidence
    assert "x-00002.gguf" in found(asked, "bytes by role").evidence


def test_backends_of_a_build_come_from_cmake_or_its_libraries(tmp_path: Path) -> None:
    """Missing backends are named, and whether a device of the rig needs one."""
    assert build_options(tmp_path) == {}
    asked = replace(question(dense(), strix()), build_dir=tmp_path)
    assert found(asked, "the build lacks").state is State.NOT_CHECKED
    (tmp_path / "libggml-cuda.so").touch()
    assert build_options(tmp_path)["CUDA"] is True
    hazard = found(asked, "the build lacks")
    assert hazard.state is State.PRESENT
    assert "-DGGML_HIP=ON" in hazard.advice
    cache = "//x\nGGML_CUDA:BOOL=ON\nGGML_HIP:BOOL=ON\nGGML_VULKAN:BOOL=OFF\n"
    (tmp_path / "CMakeCache.txt").write_text(cache, encoding="utf-8")
    complete = found(asked, "the build lacks")
    assert complete.state is State.ABSENT
    assert "off:" in complete.evidence
    assert "VULKAN" in complete.evidence.split("off:")[1]
    assert found(question(dense(), strix()), "the build lacks").state is State.NOT_CHECKED
