"""``--list``: the plan and every command line, without running anything. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from harness.effect import NO_TRACE
from harness.followups import launches, planned_cells
from harness.model import Purpose
from harness.plain import visible

if TYPE_CHECKING:
    from harness.model import PlannedVariant
    from harness.prepare import Ready


def listing(ready: Ready) -> str:
    """Variants, devices, and the command of every planned launch, one a line."""
    manifest = ready.manifest
    lines = [
        f"engine    {manifest.engine.name}, sha256 {manifest.engine.sha256[:12]}",
        f"matrix    {manifest.matrix.name}, sha256 {manifest.matrix.sha256[:12]}",
        f"devices   {_devices(ready)}",
        *(f"          {note}" for note in manifest.rig.notes),
        *(f"prompt    {p.name}: {len(p.ids)} ids, {p.source}" for p in manifest.probes),
        "",
        "variants",
        *(_variant(entry) for entry in manifest.variants),
        "",
        f"{launches(manifest)} launches, and extra ones where the logs ask for them",
        *_commands(ready),
    ]
    lines += [f"warning: {text}" for text in manifest.warnings]
    return "\n".join(visible(line) for line in lines) + "\n"


def _devices(ready: Ready) -> str:
    rig = ready.manifest.rig
    count = "unknown" if rig.device_count is None else str(rig.device_count)
    names = "; ".join(f"{device.id}: {device.name}" for device in rig.devices)
    return f"{count} ({rig.how})" + (f": {names}" if names else "")


def _variant(entry: PlannedVariant) -> str:
    variant = entry.variant
    text = f"  {variant.id:<4} {variant.name}"
    if not entry.planned:
        return f"{text}: {'REFUSED' if entry.refused else 'SKIPPED'}, {entry.why_not}"
    if silent := [part for part, value in variant.effect if value == NO_TRACE]:
        text += f" (leaves no trace: {', '.join(silent)})"
    elif not variant.effect and variant.flags:
        text += " (leaves no trace)"
    return text


def _commands(ready: Ready) -> list[str]:
    probes = {probe.name: probe for probe in ready.manifest.probes}
    out = []
    for cell in planned_cells(ready.manifest, ready.engine):
        argv = ready.engine.command(
            ready.binaries,
            cell.flags,
            probes[cell.probe],
            probe_file=Path("probes") / f"{cell.probe}.txt",
        )
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in cell.env)
        name = f"V{cell.variant}/{cell.probe}-{cell.repeat}"
        if cell.purpose is Purpose.WARMUP:
            name = f"warmup/{name}"
        out.append(f"  {name:<16} {env + ' ' if env else ''}{shlex.join(argv)}")
    return out
