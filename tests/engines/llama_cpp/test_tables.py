"""What a log fills is bounded, and what did not fit is not passed over in silence."""

from __future__ import annotations

import pytest

from hetero_test.engines.llama_cpp import tables
from hetero_test.engines.llama_cpp.tables import Tables
from tests.engines.llama_cpp.samples import said

BEGIN = "x: loaded meta data with 1 key-value pairs and 2 tensors from {}.gguf"


def test_a_table_has_room_for_what_it_knows() -> None:
    """A full table takes another value of a key that it has; of a new key it says that it is full.

    The last of several values stays.
    """
    one, other, table = Tables(), Tables(), dict.fromkeys(range(tables.MOST), "")
    one.put(table, 0, "again")
    other.put(table, -1, "new")
    assert (one.overflow, other.overflow) == (False, True)
    assert table[0] == "again"
    assert -1 not in table


def test_a_list_takes_no_more_than_it_has_room_for() -> None:
    """Who adds is told."""
    one, other, entries = Tables(), Tables(), [0] * (tables.MOST - 1)
    assert one.add(entries, 1)
    assert not other.add(entries, 2)
    assert (one.overflow, other.overflow) == (False, True)
    assert entries[-1] == 1


@pytest.mark.parametrize(
    "line",
    [
        "- CUDA{} : some card (10 MiB, 9 MiB free)",
        BEGIN,
        "llama_context: constructing llama_context{}",
        "using device CUDA{} (some card) - 23877 MiB free",
        "- device 0: CUDA{}",
        "layer {} assigned to device CUDA0, is_swa = 0",
        "tensor blk.{}.ffn_up_exps.weight (1 MiB f32) buffer type overridden to CPU",
        "tensor '{}' (f32) (and 3 others) cannot be used with preferred buffer type A, "
        "using B instead",
        "CUDA{} model buffer size = 1.00 MiB",
        "CUDA{} KV buffer size = 1.00 MiB",
        "CUDA{} compute buffer size = 1.00 MiB",
        "layer {}: dev = RPC0",
    ],
)
def test_a_log_that_fills_a_table_has_no_known_placement(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever table it is: what was left out may be what matters."""
    monkeypatch.setattr(tables, "MOST", 8)
    begin = BEGIN.format("m")
    few, many = range(7), range(9)
    assert not said(begin, *(line.format(n) for n in few)).overflow
    assert said(begin, *(line.format(n) for n in many)).overflow
