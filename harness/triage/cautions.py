"""What to know of a rig's bandwidths before its answer is read: assumed, uneven, unbelievable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.triage.recalibrate import baseline
from harness.triage.rig_devices import COPY_LIMIT, assumed_gb_s, is_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.triage.question import Question
    from harness.triage.rigfile import DeviceFacts

UNEVEN = 1.5
"""Upper over lower end from which a measured bandwidth had better be measured again."""
LITTLE = 0.5
"""Share of the data sheet below which a measurement is remarked upon."""


def cautions(question: Question) -> list[str]:
    """One sentence each, devices in the order of the rig."""
    return [text for device in question.rig.devices for text in _of(question, device)]


def _of(question: Question, device: DeviceFacts) -> Iterator[str]:
    assumed = assumed_gb_s(device)
    if assumed is not None and baseline(question, device) is None:
        yield f"{device.id}: {_assumed(device, assumed)}"
    told, read = device.bandwidth_specified_gb_s, device.bandwidth_measured_gb_s
    if read is None or device.bandwidth_effective:
        return
    rate = float(read.value)
    if read.low and read.high and read.high > UNEVEN * read.low:
        yield (
            f"{device.id}: its bandwidth was measured as {rate:.4g} GB/s, but {read.low:.4g} to "
            f"{read.high:.4g} is possible ({read.source}): measure it again at rest, with "
            "hetero-test rig"
        )
    if told is not None and contradicts_its_data_sheet(device):
        sheet = float(told.value)
        more = "what was measured is believed" if rate < sheet else "it is not believed"
        yield (
            f"{device.id}: the {rate:.4g} GB/s that were measured contradict the {sheet:.4g} GB/s "
            f"of its data sheet; {more}"
        )


def contradicts_its_data_sheet(device: DeviceFacts) -> bool:
    """Whether what was measured of its memory is far from what is specified of it."""
    told, read = device.bandwidth_specified_gb_s, device.bandwidth_measured_gb_s
    if told is None or read is None or device.bandwidth_effective:
        return False
    return not LITTLE * told.value <= read.value <= COPY_LIMIT * told.value


def _assumed(device: DeviceFacts, gb_s: float) -> str:
    what = "its memory" if device.name is None else device.name.value
    if is_cpu(device):
        return (
            f"memory bandwidth not measured, assumed {gb_s:.0f} GB/s, no figure for {what}: "
            "run hetero-test rig"
        )
    return (
        f"assumed {gb_s:.0f} GB/s, no figure for {what}: give its bandwidth in the rig file, or "
        f"--baseline {device.id}=TOK_S"
    )
