"""What a log tells before anything is answered."""

from __future__ import annotations

import pytest

from hetero_test.engines.llama_cpp.log import Drafts
from hetero_test.engines.llama_cpp.tables import KEPT
from tests.engines.llama_cpp.samples import log, said


def test_machine() -> None:
    """Build, instruction sets and device list are read."""
    found = log("split")
    assert found.build == "1 (5b4ebc5)"
    assert "AVX2" in found.system
    assert [device.id for device in found.devices] == ["CPU", "RPC0", "RPC1"]
    assert found.devices[1].name == "127.0.0.1:50052"


def test_draft_model_that_nothing_drafts_with() -> None:
    """A draft model without a way of speculation is loaded, and nothing was set up."""
    found = log("draft-unused")
    assert found.draft is not None
    assert found.drafting == ()
    assert found.drafts == Drafts()


@pytest.mark.parametrize(
    "line",
    [
        "0.00.008.000 I srv  llama_server: listening on http://127.0.0.1:1",
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8080, http threads: 7",
        "main: HTTP server listening",
    ],
)
def test_a_server_is_ready_when_it_says_so(line: str) -> None:
    """Newer and older builds; until then it is not."""
    assert said(line).listening
    assert not said(line.replace("listening", "starting")).listening


def test_a_way_of_drafting_is_named_once() -> None:
    """A server sets it up for every slot; a few of the lines are kept for the report."""
    found = said(*["adding speculative implementation 'draft-simple'"] * 500)
    assert found.drafting == ("draft-simple",)
    assert len(found.lines) == KEPT


@pytest.mark.parametrize(
    "line",
    [
        "main: server is listening on http://127.0.0.1:8080 - starting the main loop",
        "0.00.115.787 I srv  main: server is listening on http://127.0.0.1:8080",
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8080, http threads: 3",
    ],
)
def test_a_server_that_listens_says_so_in_several_ways(line: str) -> None:
    """From then on no flag is refused any more, whatever a line says."""
    assert said(line).listening


@pytest.mark.parametrize(
    ("line", "features"),
    [
        ("CUDA : ARCHS = 750 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 |", ("SSE3", "AVX2")),
        ("CPU : SSE3 = 1 | AVX = 0 | AVX2 = 1 | CUDA : USE_GRAPHS = 1 |", ("SSE3", "AVX2")),
        ("AVX = 1 | AVX2 = 1 | AVX512 = 0 | FMA = 1 |", ("AVX", "AVX2", "FMA")),
    ],
)
def test_features_of_the_processor_are_its_own(line: str, features: tuple[str, ...]) -> None:
    """What another backend lists is no feature of the processor."""
    assert said(f"system_info: n_threads = 1 (n_threads_batch = 1) / 2 | {line}").system == features
