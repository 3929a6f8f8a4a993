"""One row a run for those who compute with it, as CSV and as Parquet."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from hetero_test.errors import UsageError
from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report import csv, parquet
from hetero_test.values.record import Record
from hetero_test.values.run import Purpose, RunState
from tests.runs import altered

from .factories import every_state, flipped, hostile, two_cards
from .hostile import ALL_AT_ONCE


def read(record: Record) -> pd.DataFrame:
    """The CSV text as a reader with pandas gets it back."""
    text = csv.build(record, judge(record), redactor=Redactor.off())
    return pd.read_csv(io.StringIO(text), dtype={"md5": str, "variant": str, "of": str})


@pytest.mark.parametrize("record", [two_cards(), every_state(), hostile(ALL_AT_ONCE)])
def test_every_run_is_a_row(record: Record) -> None:
    """Whatever texts a run holds, warm-ups and re-checks included, in the order of the record."""
    every = (*record.runs, *record.warmup, *record.rechecks)

    table = read(record)

    assert list(table.columns) == list(csv.TYPES)
    assert list(table["state"]) == [run.state.value for run in every]
    assert list(table["purpose"]) == [run.purpose.value for run in every]


def test_hashes_and_numbers_survive() -> None:
    """An md5 stays text, digits are not rounded, and what is unknown is missing, not 0."""
    record = two_cards()
    silent = altered(record.runs[0], major_faults=None)
    record = replace(record, runs=(silent, *record.runs[1:]))

    table = read(record)

    assert list(table["md5"]) == [run.md5 for run in record.runs]
    assert list(table["decode_tok_s"]) == [run.timings.decode_tok_s for run in record.runs]
    assert pd.isna(table["major_faults"][0])
    assert table["major_faults"][1] == record.runs[1].outcome.major_faults


def test_the_result_is_that_of_the_run_itself() -> None:
    """A run that differs is a FAIL in its own row; the baseline is compared with nothing."""
    table = read(flipped(two_cards(), "4", 17))

    assert "FAIL" in set(table[table["variant"] == "4"]["result"])
    assert set(table[table["variant"] == "3"]["result"]) == {"PASS"}
    assert table[table["variant"] == "0"]["result"].isna().all()


def test_a_warm_up_has_no_result() -> None:
    """It shares its key with a run of the rounds, and is none."""
    record = two_cards()
    warm = altered(record.runs[-1], purpose=Purpose.WARMUP, state=RunState.OK)
    record = replace(record, warmup=(warm,))

    last = read(record).iloc[-1]

    assert last["purpose"] == "warmup"
    assert pd.isna(last["result"])
    assert pd.isna(last["stream"])


def test_names_of_the_machine_are_replaced() -> None:
    """Both formats are as fit for publishing as the report."""
    record = two_cards()
    told = altered(record.runs[0], state=RunState.CRASHED, reason="lost /home/alice/models/pack")
    record = replace(record, runs=(told, *record.runs[1:]))
    redactor = Redactor(pairs=(("/home/alice", "~"),))

    text = csv.build(record, judge(record), redactor=redactor)

    assert "lost ~/models/pack" in text
    assert "alice" not in text


def test_parquet_holds_the_same_frame() -> None:
    """Types and all."""
    pytest.importorskip("pyarrow")
    record = every_state()

    made = parquet.build(record, judge(record), redactor=Redactor.off())

    want = csv.frame(record, judge(record), redactor=Redactor.off())
    got = pd.read_parquet(io.BytesIO(made))
    pd.testing.assert_frame_equal(got, want)


def test_parquet_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong request of the command line, with the other format named."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    record = two_cards()

    with pytest.raises(UsageError) as told:
        parquet.build(record, judge(record), redactor=Redactor.off())

    assert "pip install 'hetero-test[parquet]'" in str(told.value)
    assert "--format csv" in str(told.value)


@pytest.mark.process
def test_a_report_is_printed_without_pandas() -> None:
    """It takes longer to load than a report to render, so only frames load it."""
    code = (
        "import sys\n"
        "from hetero_test.judge.judge import judge\n"
        "from hetero_test.publish.redact import Redactor\n"
        "from hetero_test.report import junit, markdown\n"
        "from tests.report.factories import every_state\n"
        "record = every_state()\n"
        "for one in (markdown, junit):\n"
        "    one.build(record, judge(record), redactor=Redactor.off())\n"
        "print([m for m in ('pandas', 'numpy') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
