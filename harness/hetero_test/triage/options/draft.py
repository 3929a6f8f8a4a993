"""Drafting: the target's own head, or a drafter on another device, with its break-even."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import placement_flags
from hetero_test.triage.cost.drafting import break_even_p, implied_beta, round_cost, speedup, to_p
from hetero_test.triage.cost.memory import compute_buffer_bytes, fill
from hetero_test.triage.cost.placement import Drafting, DraftKind, Placement
from hetero_test.triage.cost.terms import total
from hetero_test.triage.cost.token import step_terms, verify_cost
from hetero_test.triage.model.facts import TokenLists
from hetero_test.triage.options.alone import reads_on
from hetero_test.triage.options.devices import device_of, told_us
from hetero_test.triage.options.option import Option, OptionFamily

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import DraftQuestion, TriageQuestion

OWN_HEAD_TOKENS = 1.7
"""Tokens a round that a target with its own head of one draft commits, as people report it."""
OWN_HEAD_WINDOW = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The conditional acceptance at which a drafter pays, at the middle of all unknowns."""

    draft_cost: float
    """r, in steps of the target."""
    verify: float
    """V(K + 1)."""
    against_none: float | None
    """p against no drafting; None: no p suffices."""
    against_own_head: float | None
    """p against the target's own head; None: no p suffices, or it has none."""


def own_head(question: TriageQuestion, base: Option) -> Option | None:
    """The base placement with the model's own draft head; None: the file has no such head."""
    asked = question.draft
    own_asked = asked is not None and asked.model is None
    if not question.model.nextn_layers and not own_asked:
        return None
    window = asked.window if asked is not None and own_asked else OWN_HEAD_WINDOW
    tokens = asked.tokens_per_round if asked is not None and own_asked else None
    drafting = Drafting(
        window=window,
        tokens_per_round=tokens or min(window + 0.7, OWN_HEAD_TOKENS + 0.3 * (window - 1)),
        tokens_sigma=0.03 if tokens else 0.15,
        kind=DraftKind.OWN_HEAD,
        beta=asked.beta if asked is not None else None,
        verify=asked.verify if asked is not None else {},
    )
    told = "given" if tokens else "assumed, as people report of such heads"
    return Option(
        key=f"own-head:{base.key}",
        title=f"{base.title}, drafting {window} with its own head",
        family=OptionFamily.DRAFTER,
        devices=base.devices,
        placement=replace(base.placement, drafting=drafting),
        fills=base.fills,
        flags=placement_flags.joined(base.flags, placement_flags.own_head(window)),
        prompt=base.prompt,
        regime=base.regime,
        prompt_note=base.prompt_note,
        notes=(f"{drafting.tokens_per_round:.2f} tokens a round ({told})",),
    )


def external(
    question: TriageQuestion,
    asked: DraftQuestion,
    base: Option,
    device: DeviceFacts,
    drafter: ModelBytes,
    estimates: Estimates,
) -> tuple[Option, BreakEven]:
    """The base placement with a drafter on another device, and what it has to accept.

    A round costs K drafts, one after another; only token ids cross the link.

    Args:
        question: about the target.
        asked: about the drafter: window, acceptance, measured speed.
        base: the target's placement, without drafting.
        device: where the drafter runs.
        drafter: its sizes.
        estimates: of the unknowns; it learns nothing here.
    """
    assert asked.model is not None
    drafting = _external_drafting(question, asked, base, device, drafter, estimates)
    placement = replace(base.placement, drafting=drafting)
    even = break_even(question, placement, drafting, estimates)
    parts = {
        "drafter": float(drafter.resident_bytes),
        "drafter's KV": drafter.kv_bytes,
        "drafter's buffer": compute_buffer_bytes(asked.model, question.ubatch),
    }
    option = Option(
        key=f"drafter:{device.id}",
        title=f"{base.title}, {asked.model.name} drafts {asked.window} on {device.id}",
        family=OptionFamily.DRAFTER,
        devices=tuple(dict.fromkeys((*base.devices, device.id))),
        placement=placement,
        fills=(*base.fills, fill(device, question.rig, parts)),
        flags=placement_flags.joined(base.flags, placement_flags.drafter(device.id, asked.window)),
        prompt=base.prompt,
        regime=base.regime,
        prompt_note=base.prompt_note,
        notes=_external_notes(question, asked, even),
        lacking=None if asked.tokens_per_round is not None else "its acceptance",
        impossible=_impossible(asked.tokens, even),
    )
    return option, even


def _external_drafting(
    question: TriageQuestion,
    asked: DraftQuestion,
    base: Option,
    device: DeviceFacts,
    drafter: ModelBytes,
    estimates: Estimates,
) -> Drafting:
    """A draft costs what a step of the drafter alone does: as measured there, else computed."""
    alone = Placement(
        devices=(device_of(device, drafter.trunk_quantization),),
        shape=drafter.shape,
        layer_us=told_us(question.rig.layer_us),
        reads=reads_on(device.id, drafter),
        main_class=device.device_class.value,
    )
    target_ms, draft_ms = _step_ms(estimates, base.placement), _step_ms(estimates, alone)
    if asked.tok_s is not None:
        draft_ms = 1e3 / asked.tok_s
    return Drafting(
        window=asked.window,
        tokens_per_round=asked.tokens_per_round or 1.0,
        kind=asked.kind,
        draft_cost=draft_ms / target_ms,
        beta=asked.beta,
        verify=asked.verify,
    )


def _external_notes(
    question: TriageQuestion, asked: DraftQuestion, even: BreakEven
) -> tuple[str, ...]:
    """The cost of a round, the acceptance that pays for it, and the one that was given."""
    beta = implied_beta(asked.window, 0.0, even.verify)
    verified = f"V({asked.window + 1}) {even.verify:.2f} steps (β {beta:.2f})"
    notes = [f"r {even.draft_cost:.3f} steps a draft, {verified}"]
    notes.append(f"break-even p {_told(even.against_none)} against no drafting")
    if even.against_own_head is not None or question.model.nextn_layers:
        notes.append(f"break-even p {_told(even.against_own_head)} against its own head")
    if asked.tokens_per_round is not None:
        share = (asked.tokens_per_round - 1) / asked.window
        p = to_p(asked.window, min(asked.tokens_per_round, asked.window + 1))
        notes.append(f"{asked.acceptance_source}: accepted/drafted {share:.3f}, p {p:.3f}")
    notes.append(f"token lists: {asked.tokens}")
    notes.append("whether the runtime accepts an external drafter for this target: not checked")
    return tuple(notes)


def break_even(
    question: TriageQuestion, placement: Placement, drafting: Drafting, estimates: Estimates
) -> BreakEven:
    """Acceptance at which a round is as fast as its rivals, at the middle of all unknowns.

    Args:
        question: whose model may have a draft head of its own, the stronger rival.
        placement: the target's, with its drafting.
        drafting: with the cost of a draft in steps of the target.
        estimates: of the unknowns; it learns nothing here.
    """
    estimates.predict(
        lambda read: verify_cost(placement, drafting, step_terms(placement, read), read)
    )
    read = estimates.reader()
    verify = verify_cost(placement, drafting, step_terms(placement, read), read)
    assert drafting.draft_cost is not None
    cost = round_cost(drafting.window, drafting.draft_cost, verify)
    own = None
    if question.model.nextn_layers:
        head = replace(drafting, window=OWN_HEAD_WINDOW, rows=None, kind=DraftKind.OWN_HEAD)
        estimates.predict(lambda r: verify_cost(placement, head, step_terms(placement, r), r))
        read = estimates.reader()
        head_cost = 0.075 + verify_cost(placement, head, step_terms(placement, read), read)
        rival = max(1.0, speedup(OWN_HEAD_TOKENS, head_cost))
        own = break_even_p(drafting.window, cost, incumbent_speedup=rival)
    return BreakEven(
        draft_cost=drafting.draft_cost,
        verify=verify,
        against_none=break_even_p(drafting.window, cost),
        against_own_head=own,
    )


def _impossible(tokens: TokenLists, even: BreakEven) -> str | None:
    if tokens is TokenLists.DIFFERENT:
        return "its token list is not the target's"
    return "no acceptance suffices" if even.against_none is None else None


def _step_ms(estimates: Estimates, placement: Placement) -> float:
    plain = replace(placement, drafting=None)
    estimates.predict(lambda read: total(step_terms(plain, read)))
    return total(step_terms(plain, estimates.reader()))


def _told(p: float | None) -> str:
    return "cannot be reached" if p is None else f"{p:.3f}"
