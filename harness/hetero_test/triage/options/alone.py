"""Each device alone, and two devices that serve independently: the boring answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import placement_flags
from hetero_test.triage.cost.memory import CONTEXT_BYTES, compute_buffer_bytes, fill
from hetero_test.triage.cost.placement import Placement, Read
from hetero_test.triage.cost.prompt import Computing, Prompt, Regime
from hetero_test.triage.options.devices import device_of, host, is_cpu, told_us
from hetero_test.triage.options.option import Option, OptionFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion

PROMPT_TOKENS = 2048
"""Length of the prompt that prefill speeds hold for."""


def alone(question: TriageQuestion, sizes: ModelBytes, device: DeviceFacts) -> Option:
    """Everything on one device; the token table stays in host memory."""
    parts = {
        "weights": float(sizes.resident_bytes + sizes.nextn_bytes),
        "KV": sizes.kv_bytes,
        "compute buffer": compute_buffer_bytes(question.model, question.ubatch),
        "driver": 0.0 if is_cpu(device) else float(CONTEXT_BYTES),
    }
    return Option(
        key=f"alone:{device.id}",
        title=f"{device.id} alone",
        family=OptionFamily.ALONE,
        devices=(device.id,),
        placement=replace(placement_on(question, sizes, device), reads=reads_on(device.id, sizes)),
        fills=(fill(device, question.rig, parts), *host_fill(question, sizes, device)),
        flags=placement_flags.alone(device.id, cpu=is_cpu(device)),
        prompt=prompt_on(question, sizes, ((device, 1.0),)),
        regime=Regime.RESIDENT,
    )


def placement_on(
    question: TriageQuestion,
    sizes: ModelBytes,
    main: DeviceFacts,
    *others: DeviceFacts,
    of_trunk: bool = False,
) -> Placement:
    """A model on devices with the costs that were fitted to the rig, still without reads.

    Args:
        question: the rig.
        sizes: the model's.
        main: the device that verifies drafts.
        others: the devices that it works with.
        of_trunk: take the bandwidths that were fitted to the type of the trunk's weights, not
            of the experts'.
    """
    kind = sizes.trunk_quantization if of_trunk else sizes.expert_quantization
    return Placement(
        devices=tuple(device_of(device, kind) for device in (main, *others)),
        shape=sizes.shape,
        layer_us=told_us(question.rig.layer_us),
        cpu_layer_us=told_us(question.rig.cpu_layer_us),
        main_class=main.device_class.value,
    )


def reads_on(
    device: str, sizes: ModelBytes, *, trunk: float = 1.0, experts: float = 1.0, kv: float = 1.0
) -> tuple[Read, ...]:
    """Shares of a token's reads on one device; nothing where the shares are zero.

    Args:
        device: its id.
        sizes: the model's, GB a token.
        trunk: share of attention, dense and shared weights, 0 to 1.
        experts: share of the routed experts' bytes.
        kv: share of the KV cache.
    """
    found = []
    if trunk or kv:
        found.append(
            Read(
                device=device,
                gb=sizes.trunk_gb * trunk,
                kv_gb=sizes.kv_gb * kv,
                quantization=sizes.trunk_quantization,
            )
        )
    if experts and sizes.experts_gb:
        found.append(
            Read(
                device=device,
                gb=sizes.experts_gb * experts,
                experts=True,
                quantization=sizes.expert_quantization,
            )
        )
    return tuple(found)


def prompt_on(
    question: TriageQuestion, sizes: ModelBytes, shares: Sequence[tuple[DeviceFacts, float]]
) -> Prompt:
    """A prompt computed in these shares by these devices, without uploads.

    Args:
        question: the batch (``-ub``).
        sizes: the model's active parameters.
        shares: by device, of all arithmetic; together one.
    """
    return Prompt(
        tokens=PROMPT_TOKENS,
        ubatch=question.ubatch,
        active_parameters_b=sizes.active_parameters_b,
        computing=tuple(
            Computing(device=device.id, device_class=device.device_class.value, share=share)
            for device, share in shares
            if share
        ),
    )


def host_fill(question: TriageQuestion, sizes: ModelBytes, *used: DeviceFacts) -> tuple[Fill, ...]:
    """The tables that stay in host memory, unless the host is among the used devices."""
    cpu = host(question.rig)
    if cpu is None or any(device.id == cpu.id for device in used) or not sizes.host_bytes:
        return ()
    return (fill(cpu, question.rig, {"token tables": float(sizes.host_bytes)}),)


def endpoints(first: Option, second: Option) -> Option:
    """Two devices that each serve the whole model to streams of their own."""
    return Option(
        key=f"endpoints:{first.devices[0]}+{second.devices[0]}",
        title=f"{first.devices[0]} and {second.devices[0]} as two endpoints",
        family=OptionFamily.ENDPOINTS,
        devices=(*first.devices, *second.devices),
        placement=first.placement,
        fills=(*first.fills, *(f for f in second.fills if f.device in second.devices)),
        flags=tuple(
            placement_flags.EngineFlags(engine=a.engine, flags=f"{a.flags}   and   {b.flags}")
            for a, b in zip(first.flags, second.flags, strict=True)
        ),
        prompt=first.prompt,
        regime=first.regime,
        notes=("one stream runs as fast as on its device alone; only streams side by side gain",),
        streams=2,
    )
