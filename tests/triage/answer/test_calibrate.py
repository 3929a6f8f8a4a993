"""A rig's bandwidths and the cost of a split are learned from a run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from hetero_test.engines.llama_cpp.placement_flags import parse_flags
from hetero_test.errors import UsageError
from hetero_test.rig.facts import Workload
from hetero_test.rig.facts_file import dump_rig, load_rig
from hetero_test.rig.sourced import Origin
from hetero_test.triage.answer.calibrate import calibrate, read_run
from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.cost.token import log_ms
from hetero_test.triage.options.from_flags import placement_from_flags
from tests.triage.rigs import apu, card, cpu, dense, mixture, question, rig

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.triage.cost.placement import Placement
    from hetero_test.triage.learn.estimates import Estimates

VARIANTS = {
    "0": ["-dev", "CUDA0", "-sm", "none"],
    "1": ["-dev", "CUDA0", "--cpu-moe"],
    "2": ["-dev", "CUDA0", "--n-cpu-moe", "24"],
    "3": ["-dev", "none", "-ngl", "0"],
}
RATES = {("CUDA0", False): 650.0, ("CUDA0", True): 500.0, ("CPU", False): 40.0, ("CPU", True): 50.0}
SPLIT_US = 90.0


def true_ms(placement: Placement) -> float:
    """A machine that reads at known rates and pays for each split."""
    reads = sum(part.gb / RATES[part.device, part.experts] * 1e3 for part in placement.reads)
    kv = sum(part.kv_gb / 40 * 1e3 for part in placement.reads)
    return reads + kv + placement.splits * SPLIT_US / 1e3 + 0.02 * placement.shape.layers


def write_run(folder: Path, variants: dict[str, list[str]], speeds: dict[str, float]) -> Path:
    """A run directory with its document."""
    folder.mkdir()
    document: dict[str, Any] = {
        "schema": "hetero-test/run/1",
        "model_flags": ["-m", "x.gguf", "-ngl", "99"],
        "variants": [{"id": name, "flags": flags} for name, flags in variants.items()],
        "runs": [
            {
                "variant": name,
                "probe": "default",
                "repeat": 1,
                "state": "OK",
                "decode_tok_s": speed,
                "speculation": None,
                "folder": f"runs/V{name}/default-1",
            }
            for name, speed in speeds.items()
        ],
    }
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_fitted_bandwidths_come_close_to_those_of_the_machine(
    tmp_path: Path, estimates: Estimates
) -> None:
    """Four placements on an invented machine reveal its memories' speeds and its splits' cost."""
    asked = question(mixture(expert_mb=400), rig(card(), cpu()), depth=0)
    sizes = asked.sizes_of(asked.model)
    speeds = {}
    for name, flags in VARIANTS.items():
        said = parse_flags(["-ngl", "99", *flags])
        splits = {"1": 98, "2": 50}.get(name)
        placement = placement_from_flags(asked, sizes, said, splits)
        assert placement is not None
        speeds[name] = 1e3 / true_ms(placement)
    folder = write_run(tmp_path / "out", VARIANTS, speeds)
    for name, count in (("1", 98), ("2", 50)):
        log = folder / f"runs/V{name}/default-1"
        log.mkdir(parents=True)
        (log / "stderr").write_text(f"graph splits = {count}\n", encoding="utf-8")
    result = calibrate(asked, estimates, folder)
    assert [(lesson.variant, lesson.splits) for lesson in result.lessons] == [
        ("0", None),
        ("1", 98),
        ("2", 50),
        ("3", None),
    ]
    host = result.rig.device("CPU")
    assert host is not None
    fitted = host.effective_gb_s(Workload.MOE, "Q4_K")
    assert fitted is not None
    assert fitted.value == pytest.approx(50.0, rel=0.12)
    assert fitted.origin is Origin.MEASURED
    assert "--calibrate out" in fitted.source
    assert fitted.low is not None
    assert fitted.low < fitted.value
    assert result.rig.sync_us is not None
    assert result.rig.sync_us.value > PRIORS["split"].middle
    refitted = replace(asked, rig=result.rig)
    for lesson in result.lessons:
        said = parse_flags(["-ngl", "99", *VARIANTS[lesson.variant]])
        placement = placement_from_flags(refitted, sizes, said, lesson.splits)
        assert placement is not None
        told = estimates.copy().predict(partial(log_ms, placement))[0]
        assert math.exp(told) == pytest.approx(1e3 / lesson.tok_s, rel=0.1)


def test_the_rig_file_keeps_what_was_fitted(tmp_path: Path, estimates: Estimates) -> None:
    """Written and read back, the facts are the same."""
    asked = question(dense(), rig(card(), cpu()), depth=0)
    folder = write_run(tmp_path / "out", {"0": ["-dev", "CUDA0"]}, {"0": 40.0})
    result = calibrate(asked, estimates, folder)
    path = tmp_path / "rig.toml"
    path.write_text(dump_rig(result.rig), encoding="utf-8")
    assert load_rig(path) == result.rig


def test_variants_that_teach_nothing_are_told(tmp_path: Path, estimates: Estimates) -> None:
    """Drafting, unknown devices, no speed, no placement: each with its reason."""
    variants = {
        "0": ["-dev", "CUDA0"],
        "1": ["-dev", "CUDA0", "--spec-type", "draft-mtp"],
        "2": ["-dev", "Vulkan7"],
        "3": ["-dev", "CUDA0"],
        "4": ["-ot", "exps=ROCm9"],
    }
    asked = question(mixture(expert_mb=300), rig(card(), cpu()))
    folder = write_run(tmp_path / "out", variants, {"0": 40.0, "1": 60.0, "2": 9.0, "4": 9.0})
    reasons = dict(calibrate(asked, estimates, folder).passed_over)
    assert reasons["1"] == "it drafted"
    assert "does not have" in reasons["2"]
    assert reasons["3"] == "no decode speed"
    assert "does not have" in reasons["4"]


def test_a_run_that_teaches_nothing_is_an_error_with_its_reasons(
    tmp_path: Path, estimates: Estimates
) -> None:
    """The message says what could be learned from."""
    folder = write_run(tmp_path / "out", {"0": ["-dev", "Vulkan7"]}, {"0": 40.0})
    with pytest.raises(UsageError, match="no variant teaches"):
        calibrate(question(dense(), rig(card(), cpu())), estimates, folder)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    """No file, no JSON, another schema."""
    with pytest.raises(UsageError, match="cannot read"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json: line 1, column 2: not JSON"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="schema"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "line 1, column 101: lists and objects are nested"),
        ('{"a": ' + "9" * 5000 + "}", "line 1, column 7: a whole number"),
        ('{"schema": "hetero-test/run/1", "variants": 5}', "variants: "),
        ('{"schema": "hetero-test/run/1", "runs": [{"variant": "0", "decode_tok_s": "9"}]}',
         r"runs\[0\].decode_tok_s: "),
    ],
)  # fmt: skip
def test_a_broken_run_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    """One that was cut, edited, or made by something else."""
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"run.json: {told}"):
        read_run(tmp_path)


def test_a_log_whose_folder_no_path_can_name_tells_nothing(
    tmp_path: Path, estimates: Estimates
) -> None:
    """A folder in a document is checked before it is used as a path."""
    folder = write_run(tmp_path / "out", {"0": ["-dev", "CPU"]}, {"0": 8.0})
    document = json.loads((folder / "run.json").read_text())
    for name in ("a\0b", "\ud800"):
        document["runs"][0]["folder"] = name
        (folder / "run.json").write_text(json.dumps(document))
        (lesson,) = calibrate(question(dense(), rig(cpu())), estimates, folder).lessons
        assert lesson.splits is None


@pytest.mark.parametrize(
    ("flags", "devices", "parallel"),
    [
        ("-ngl 0", {"CPU"}, False),
        ("-sm none -mg 1", {"CUDA1"}, False),
        ("-ts 3,1", {"CUDA0", "CUDA1"}, False),
        ("-sm tensor -ts 1,1", {"CUDA0", "CUDA1"}, True),
        ("-dev CUDA0 -ngl 32", {"CUDA0", "CPU"}, False),
        ("-dev 1", {"CUDA1"}, False),
        ("", {"CUDA0", "CUDA1"}, False),
    ],
)
def test_flags_say_which_devices_read(flags: str, devices: set[str], parallel: bool) -> None:
    """As the engine would place a dense model."""
    asked = question(dense(), rig(card(), card("CUDA1"), cpu()))
    found = placement_from_flags(
        asked, asked.sizes_of(asked.model), parse_flags(flags.split()), None
    )
    assert found is not None
    assert {part.device for part in found.reads} == devices
    assert found.parallel is parallel
    assert sum(part.gb for part in found.reads) == pytest.approx(
        asked.sizes_of(asked.model).trunk_gb
    )


def test_shares_follow_ts_else_memory() -> None:
    """``-ts 3,1`` reads three quarters on the first; without it memory decides."""
    asked = question(dense(), rig(card(gib=24), card("CUDA1", gib=12), cpu()))
    sizes = asked.sizes_of(asked.model)
    for flags, share in (("-ts 3,1", 0.75), ("", 2 / 3)):
        found = placement_from_flags(asked, sizes, parse_flags(flags.split()), None)
        assert found is not None
        first = sum(part.gb for part in found.reads if part.device == "CUDA0")
        assert first / sizes.trunk_gb == pytest.approx(share)


def test_a_rig_without_any_device_has_no_placement() -> None:
    """And layers cannot stay on a host that is not listed."""
    asked = question(dense(), rig())
    assert placement_from_flags(asked, asked.sizes_of(asked.model), parse_flags([]), None) is None
    lonely = question(dense(), rig(card()))
    said = parse_flags(["-ngl", "10"])
    assert placement_from_flags(lonely, lonely.sizes_of(lonely.model), said, None) is None
    integrated = question(dense(), rig(apu()))
    found = placement_from_flags(
        integrated, integrated.sizes_of(integrated.model), parse_flags([]), None
    )
    assert found is not None
    assert found.staged_splits == 0
