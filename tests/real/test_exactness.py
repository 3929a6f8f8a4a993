"""What is exact on the real engine and what is not, and whether it is told apart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.matrix import matrix_file, play, prompt
from tests.rigs import Told

if TYPE_CHECKING:
    from tests.real.conftest import Rpc, Servers

pytestmark = pytest.mark.real

LIKE = ("--device-kind", "RPC0=CPU", "--device-kind", "RPC1=CPU")
IDENTICAL = {"ids equal, log-probabilities bit-identical"}


def flags(models: dict[str, Path], rpc: tuple[Rpc, Rpc], name: str, *more: str) -> list[str]:
    """The baseline: all on the CPU, with the RPC devices in sight."""
    addresses = ",".join(server.address for server in rpc)
    return ["-m", str(models[name]), "--rpc", addresses, "-dev", "none", *more]


@pytest.mark.parametrize(
    ("model", "moved"),
    [
        ("dense-f32", {"ffn-apart", "ffn-cpu"}),
        ("moe-f32", {"experts-other", "experts-apart", "experts-cpu"}),
    ],
)
def test_like_devices_are_exact(
    model: str,
    moved: set[str],
    build: Path,
    rpc: tuple[Rpc, Rpc],
    models: dict[str, Path],
    tmp_path: Path,
) -> None:
    """F32, dense and MoE: every placement over like devices is bit-identical, and has moved."""
    told = play(build, tmp_path, flags(models, rpc, model), *LIKE)
    assert told.code == 0, told.stdout
    assert told.json["conclusion"] == "PASS"
    placed = {"alone-RPC0", "alone-RPC1", "half", "split", "split31", *moved}
    assert told.effects() == {"0": None, **dict.fromkeys(placed, "PROVEN")}
    # The baseline is on the CPU already: the same command again would prove nothing.
    assert "cpu" not in told.effects()
    assert set(told.results("exact")) == set(told.results("repeat")) == {"PASS"}
    assert told.texts() == IDENTICAL
    assert told.json["counts"]["not_claimed"] == 0


@pytest.mark.parametrize("model", ["dense-f32", "moe-f32"])
def test_drafter_on_the_other_device(
    model: str, build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """Speculation with the drafter elsewhere, both ways: the same ids, and it did draft."""
    speculation = ("-md", str(models["draft-f32"]), "--spec-type", "draft-simple")
    told = play(
        build,
        tmp_path,
        flags(models, rpc, model, *speculation),
        *LIKE,
        *("--only", "draft-same,draft-other,draft-swapped,draft-cpu"),
    )
    assert told.code == 0, told.stdout
    assert set(told.effects().values()) == {None, "PROVEN"}
    assert set(told.results("exact")) == {"PASS"}
    assert told.texts() == {"ids only: under speculation log-probabilities are not real"}
    for run in told.json["runs"]:
        assert 0 < run["speculation"]["accepted"] <= run["speculation"]["offered"]
        assert run["speculation"]["rounds"] > 0


def test_draft_model_that_nothing_drafts_with(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """A draft model without --spec-type holds memory and drafts nothing: not proven, and said."""
    given = flags(models, rpc, "dense-f32", "-md", str(models["draft-f32"]))
    told = play(build, tmp_path, given, *LIKE, "--only", "draft-other", "--strict")
    assert told.code == 4
    assert told.effects()["draft-other"] == "CONTRADICTED"
    assert "nothing drafted" in told.report
    assert any("--spec-type is missing" in text for text in told.json["warnings"])
    assert told.texts() == IDENTICAL  # nothing was drafted, so these are real


REPACKED = prompt(25, first=198, step=53)
"""A prompt whose fourth token hangs on whether the AVX2 build repacks its weights."""


def test_repacked_weights(
    build: Path,
    variants: list[str],
    rpc: tuple[Rpc, Rpc],
    models: dict[str, Path],
    tmp_path: Path,
) -> None:
    """Q4_0 on the CPU against RPC of one kind: the same tensors, another stream, and why."""
    if variants[0] != "haswell":
        pytest.skip("the prompt is chosen for AVX2")
    told = play(
        build,
        tmp_path,
        flags(models, rpc, "moe-q4_0"),
        *LIKE,
        *("--only", "cpu,alone-RPC0"),
        prompts=[REPACKED],
    )
    assert told.code == 1
    assert told.json["conclusion"] == "FAIL"
    found = told.verdicts("exact", "alone-RPC0")
    assert [verdict["first_difference"] for verdict in found] == [3, 3]
    assert all(verdict["cause"].startswith("the CPU repacks these weights") for verdict in found)
    assert "CPU_REPACK" in told.report
    assert len({run["residency"]["label"] for run in told.json["runs"]}) == 1


def test_weights_that_are_not_repacked(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """The same without repacking is exact, bit for bit."""
    given = flags(models, rpc, "moe-q4_0", "--no-repack")
    told = play(build, tmp_path, given, *LIKE, "--only", "cpu,alone-RPC0", prompts=[REPACKED])
    assert told.code == 0, told.stdout
    assert told.texts() == IDENTICAL


def test_pinned_recipe_takes_repacking_away(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """--pinned turns repacking off for every variant."""
    told = play(
        build,
        tmp_path,
        flags(models, rpc, "moe-q4_0"),
        *LIKE,
        *("--pinned", "--only", "alone-RPC0"),
        prompts=[REPACKED],
    )
    assert told.code == 0, told.stdout


def test_undeclared_devices_are_not_claimed(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """An RPC device's kind cannot be seen: compared and shown, but neither PASS nor FAIL."""
    told = play(build, tmp_path, flags(models, rpc, "dense-f32"), "--only", "alone-RPC0,alone-RPC1")
    assert told.code == 4
    assert set(told.results("exact")) == {"NOT_CLAIMED"}
    assert told.texts() == IDENTICAL
    assert told.json["counts"]["not_claimed"] == 4


def test_one_foreign_kind_is_compared_within_itself(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """Two devices of one other kind are claimed against each other, not against the baseline."""
    declared = ("--device-kind", "RPC0=old box", "--device-kind", "RPC1=old box")
    told = play(
        build,
        tmp_path,
        flags(models, rpc, "dense-f32"),
        *declared,
        *("--only", "alone-RPC0,alone-RPC1"),
    )
    assert set(told.results("exact", "alone-RPC0")) == {"NOT_CLAIMED"}
    assert set(told.results("exact", "alone-RPC1")) == {"PASS"}
    assert told.verdicts("exact", "alone-RPC1")[0]["against"]["variant"] == "alone-RPC0"
    assert told.code == 0


def _ties(told: Told) -> list[str]:
    return [
        verdict["explanation"]["tie"]
        for verdict in told.verdicts("exact")
        if verdict["first_difference"] is not None
    ]


def test_canary_across_instruction_sets(
    build: Path,
    old_cpu_build: Path,
    servers: Servers,
    models: dict[str, Path],
    tmp_path: Path,
) -> None:
    """A model whose argmax is decided by rounding parts across instruction sets, in near ties."""
    other = servers.start(old_cpu_build)
    given = ["-m", str(models["tie-f32"]), "--rpc", other.address, "-dev", "none"]
    told = play(
        build,
        tmp_path,
        given,
        *("--only", "alone-RPC0", "--repeats", "1"),
        prompts=[prompt(25, first=first) for first in (0, 90, 180, 270)],
    )
    assert set(told.results("exact")) == {"NOT_CLAIMED"}
    ties = _ties(told)
    assert len(ties) >= 3
    assert set(ties) == {"near tie"}
    assert "near tie" in told.report
    assert {verdict["cause"] for verdict in told.verdicts("exact")} <= {"near tie", None}


def test_canary_on_vulkan(vulkan_build: Path, models: dict[str, Path], tmp_path: Path) -> None:
    """Vulkan rounds as no CPU does: differences are found, and called near ties."""
    scratch = tmp_path / "xdg"
    scratch.mkdir(mode=0o700)
    os.environ.update(GGML_VK_VISIBLE_DEVICES="0,0", XDG_RUNTIME_DIR=str(scratch))
    try:
        told = play(
            vulkan_build,
            tmp_path,
            ["-m", str(models["tie-f32"]), "-dev", "none"],
            *("--only", "alone-Vulkan0", "--repeats", "1"),
            prompts=[prompt(12, first=first) for first in (0, 120)],
            max_new=6,
        )
    finally:
        del os.environ["GGML_VK_VISIBLE_DEVICES"], os.environ["XDG_RUNTIME_DIR"]
    assert told.effects()["alone-Vulkan0"] == "PROVEN"
    assert set(told.results("exact")) == {"NOT_CLAIMED"}
    assert set(_ties(told)) == {"near tie"}


def test_a_users_own_matrix(build: Path, models: dict[str, Path], tmp_path: Path) -> None:
    """Flash attention off, KV in q8_0 and ubatch 1 are found where they differ, with the gap."""
    own = matrix_file(
        tmp_path,
        'id = "fa-off"\nname = "flash attention off"\nflags = ["-fa", "off"]',
        'id = "kv-q8"\nname = "KV in q8_0"\nflags = ["-ctk", "q8_0", "-ctv", "q8_0"]',
        'id = "ub1"\nname = "ubatch 1"\nflags = ["-ub", "1"]',
    )
    given = ["-m", str(models["tie-f32"]), "-fa", "on", "-dev", "none"]
    prompts = [prompt(201, first=first) for first in (0, 180)]
    told = play(build, tmp_path, given, "--repeats", "1", prompts=prompts, matrix=own)
    assert told.code == 1
    for variant in ("fa-off", "kv-q8", "ub1"):
        parted = [v for v in told.verdicts("exact", variant) if v["first_difference"] is not None]
        assert parted, variant
        assert {verdict["result"] for verdict in parted} == {"FAIL"}
        assert all(verdict["explanation"]["gap"] is not None for verdict in parted)
