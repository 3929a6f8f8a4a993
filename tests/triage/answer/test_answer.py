"""Options, ranked and judged: what triage says of whole rigs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hetero_test.rig.facts import Baseline, PairFacts
from hetero_test.rig.sourced import measured
from hetero_test.triage.answer.answer import TriageAnswer, answer
from hetero_test.triage.cost.memory import Fit, fits
from hetero_test.triage.cost.prompt import Regime, Runtime
from hetero_test.triage.learn.scoring import Call
from hetero_test.triage.model.facts import TokenLists
from hetero_test.triage.options.option import OptionFamily
from hetero_test.triage.options.question import DraftQuestion, Speeds, SplitCount
from tests.triage.rigs import GIB, apu, card, cpu, dense, mixture, question, rig, strix

if TYPE_CHECKING:
    from hetero_test.triage.answer.answer import Ranked
    from hetero_test.triage.learn.estimates import Estimates

TODAY = Speeds(decode_tok_s=22.0, prefill_tok_s=192.0)


def by_key(found: TriageAnswer, key: str) -> Ranked:
    """One option of an answer."""
    return next(ranked for ranked in found.ranked if ranked.option.key == key)


def keys(found: TriageAnswer) -> list[str]:
    """The order of the options."""
    return [ranked.option.key for ranked in found.ranked]


def test_an_eighth_of_the_experts_on_a_card_beside_an_apu_is_no_go_for_its_prefill(
    estimates: Estimates, q: float
) -> None:
    """Decode about +10 %, prefill worse by several times, NO-GO unless prompts are short."""
    asked = question(mixture(), strix(), incumbent=TODAY, baselines={"ROCm0": TODAY})
    found = by_key(answer(asked, estimates, q), "experts:ROCm0+CUDA0")
    assert "12.5%" in found.option.title
    gain, prefill = found.forecast.gain, found.forecast.prefill
    assert gain is not None
    assert prefill is not None
    assert 1.05 < gain.value < 1.15
    assert gain.low < 1.10 < gain.high
    assert prefill.value == pytest.approx(35, abs=5)
    assert found.option.regime is Regime.UPLOADED
    assert found.recommendation.call is Call.NO_GO
    unless = found.recommendation.reason.split("unless ")[1]
    assert re.match(r"fewer than 0\.\d+ prompt tokens come a reply token", unless)
    batch = re.search(r"prompts and batches are of (\d+) tokens or more", unless)
    assert batch is not None
    larger = replace(asked, ubatch=int(batch[1]))
    again = by_key(answer(larger, estimates, q), "experts:ROCm0+CUDA0")
    assert again.forecast.request_gain is not None
    assert found.forecast.request_gain is not None
    assert again.forecast.request_gain.value > 1.8 * found.forecast.request_gain.value
    assert "prompt tokens a reply token" in found.recommendation.decides


def test_the_whole_answer_is_to_keep_what_runs(estimates: Estimates, q: float) -> None:
    """The boring answer wins where no option gains over whole requests."""
    found = answer(
        question(mixture(), strix(), incumbent=TODAY, baselines={"ROCm0": TODAY}), estimates, q
    )
    assert found.call is Call.NO_GO
    assert found.ranked[0].incumbent
    assert found.ranked[0].option.key == "alone:ROCm0"


def test_without_prompts_the_same_placement_is_a_matter_of_decode(
    estimates: Estimates, q: float
) -> None:
    """NO-GO unless: at no prompt at all the gain decides."""
    asked = question(
        mixture(), strix(), incumbent=TODAY, baselines={"ROCm0": TODAY}, prompt_per_reply=0.0
    )
    found = by_key(answer(asked, estimates, q), "resident:CUDA0+ROCm0")
    assert found.recommendation.call is Call.GO


def test_a_larger_batch_uploads_less_often(estimates: Estimates, q: float) -> None:
    """Eight times the batch is nearly eight times the prefill of an uploading placement."""
    small = question(mixture(), strix(card_gib=23), incumbent=TODAY)
    large = replace(small, ubatch=2048)
    at = [by_key(answer(x, estimates, q), "resident:CUDA0+ROCm0").forecast for x in (small, large)]
    assert at[0].prefill is not None
    assert at[1].prefill is not None
    assert 3 < at[1].prefill.value / at[0].prefill.value < 4


def test_ik_llama_computes_small_batches_in_place(estimates: Estimates, q: float) -> None:
    """Below 32 × experts / used rows it uploads nothing."""
    asked = question(mixture(), strix(), runtime=Runtime.IK_LLAMA, ubatch=256)
    found = by_key(answer(asked, estimates, q), "resident:CUDA0+ROCm0")
    assert found.option.regime is Regime.IN_PLACE
    assert "512" in found.option.prompt_note


def test_a_card_for_the_attention_of_a_mixture_is_go_beside_a_desktop(
    estimates: Estimates, q: float
) -> None:
    """Weights resident, KV with its attention on the fast pool."""
    found = answer(question(mixture(expert_mb=900), rig(card(), cpu())), estimates, q)
    best = found.best
    assert best is not None
    assert best.option.key == "resident:CUDA0+CPU"
    assert best.recommendation.call is Call.GO
    assert best.option.family is OptionFamily.RESIDENT
    flags = {words.engine: words.flags for words in best.option.flags}
    assert re.search(r'-ot "blk\\\.\(.*\)\\\.ffn_\.\*_exps=CPU"', flags["llama.cpp"])
    assert "," not in flags["llama.cpp"].split("-ot")[1]
    assert flags["ik_llama.cpp"].startswith("-ngl 99")


def test_the_ot_rule_matches_exactly_the_layers_that_stay_slow(
    estimates: Estimates, q: float
) -> None:
    """As many layers as the title says, the first ones."""
    found = answer(question(mixture(expert_mb=900), rig(card(), cpu())), estimates, q)
    option = by_key(found, "resident:CUDA0+CPU").option
    count = int(re.search(r"experts of (\d+) of 48", option.title)[1])  # type: ignore[index]
    expression = re.search(r'-ot "(.*)=CPU"', option.flags[0].flags)[1]  # type: ignore[index]
    matched = [i for i in range(48) if re.search(expression, f"blk.{i}.ffn_up_exps.weight")]
    assert matched == list(range(count))
    assert fits(option.fills) is Fit.YES


def test_a_second_slower_card_for_a_model_that_fits_one_is_never_go_by_layers(
    estimates: Estimates, q: float
) -> None:
    """Tensor parallel may gain; contiguous layers are not even listed."""
    machine = rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu())
    found = answer(question(dense(), machine), estimates, q)
    assert not any(key.startswith("layers:CUDA0") for key in keys(found))
    assert by_key(found, "parallel:CUDA0+CUDA1").recommendation.call is not Call.GO
    assert any("capacity that CUDA0 already has" in item.what for item in found.not_helpful)


def test_two_cards_that_together_hold_a_model_beat_one_beside_the_host(
    estimates: Estimates, q: float
) -> None:
    """GO, against the best of one card and the host, which is what one would run today."""
    machine = rig(card(gib=16, gb_s=448.0), card("CUDA1", gib=16, gb_s=448.0), cpu())
    found = answer(question(dense(layer_mb=330), machine), estimates, q)
    assert found.rival is not None
    assert "CPU" in found.rival.label
    assert found.call is Call.GO
    assert found.best is not None
    assert found.best.option.key == "parallel:CUDA0+CUDA1"
    assert by_key(found, "layers:CUDA0+CUDA1").recommendation.call is Call.GO


def test_two_endpoints_are_for_streams_side_by_side(estimates: Estimates, q: float) -> None:
    """One stream gains nothing; several do, and that is the boring answer."""
    machine = rig(card(), card("CUDA1", gb_s=800.0), cpu())
    single = by_key(answer(question(dense(), machine), estimates, q), "endpoints:CUDA0+CUDA1")
    assert single.recommendation.call is Call.NO_GO
    both = answer(question(dense(), machine, slots=2, context=4096), estimates, q)
    assert by_key(both, "endpoints:CUDA0+CUDA1").recommendation.call is Call.GO


def test_what_does_not_fit_says_how_much_is_missing(estimates: Estimates, q: float) -> None:
    """NO-GO with the gibibytes and the device."""
    found = by_key(answer(question(mixture(), strix()), estimates, q), "alone:CUDA0")
    assert found.recommendation.call is Call.NO_GO
    assert re.search(r"CUDA0: 8\d\.\d GiB are missing", found.recommendation.decides)


def test_what_fills_a_device_is_listed(estimates: Estimates, q: float) -> None:
    """Attention, experts, KV, buffers: the sum is what is used."""
    found = by_key(answer(question(mixture(), strix()), estimates, q), "resident:CUDA0+ROCm0")
    fast = next(fill for fill in found.option.fills if fill.device == "CUDA0")
    assert set(fast.parts) == {
        "attention and shared",
        "experts",
        "KV",
        "compute buffer",
        "driver",
    }
    assert fast.used == sum(fast.parts.values())
    assert fast.capacity is not None
    assert fast.used <= fast.capacity


def test_kv_of_all_slots_counts_against_memory_and_one_context_against_time(
    estimates: Estimates, q: float
) -> None:
    """Positions × slots have to fit; a token reads its own context."""
    one = answer(question(dense(), rig(card(), cpu()), context=16384), estimates, q)
    four = answer(question(dense(), rig(card(), cpu()), context=16384, slots=4), estimates, q)
    assert four.sizes.kv_bytes == 4 * one.sizes.kv_bytes
    assert four.sizes.kv_gb == one.sizes.kv_gb


def test_a_card_of_unknown_speed_is_never_go(estimates: Estimates, q: float) -> None:
    """MEASURE FIRST, however large the gain would be."""
    machine = rig(card(gb_s=None), cpu())
    found = by_key(
        answer(question(mixture(expert_mb=900), machine), estimates, q), "resident:CUDA0+CPU"
    )
    assert found.forecast.gain is not None
    assert found.recommendation.call is Call.MEASURE_FIRST


def test_no_option_is_go_whose_gain_lies_inside_its_interval(
    estimates: Estimates, q: float
) -> None:
    """Over several rigs and models: GO means that the whole interval gains."""
    for model in (mixture(), mixture(expert_mb=900), dense(), dense(layer_mb=330)):
        for machine in (strix(), rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu())):
            for ranked in answer(question(model, machine), estimates, q).ranked:
                gain = ranked.forecast.gain
                if (
                    ranked.recommendation.call is Call.GO
                    and ranked.option.family is not OptionFamily.ENDPOINTS
                ):
                    assert gain is not None
                    assert gain.low > 1


def test_a_baseline_moves_every_option_on_its_device(estimates: Estimates, q: float) -> None:
    """A CPU that was measured slower than expected makes the split slower as well."""
    asked = question(mixture(expert_mb=900), rig(card(), cpu()))
    slow = replace(asked, baselines={"CPU": Speeds(decode_tok_s=6.0)})
    before = by_key(answer(asked, estimates, q), "resident:CUDA0+CPU").forecast.decode
    after = by_key(answer(slow, estimates, q), "resident:CUDA0+CPU").forecast.decode
    assert after.value < 0.8 * before.value
    alone = by_key(answer(slow, estimates, q), "alone:CPU").forecast.decode
    assert alone.value == pytest.approx(6.0, rel=0.02)


def test_a_baseline_in_the_rig_file_counts_for_the_same_model_only(
    estimates: Estimates, q: float
) -> None:
    """The command line's goes before it; another model's says nothing."""
    told = Baseline(model="mixture", decode_tok_s=measured(6.0, "a run"))
    other = replace(told, model="something else")
    asked = question(mixture(expert_mb=900), rig(card(), replace(cpu(), baselines=(told,))))
    alone = by_key(answer(asked, estimates, q), "alone:CPU").forecast.decode
    assert alone.value == pytest.approx(6.0, rel=0.02)
    elsewhere = replace(asked, rig=rig(card(), replace(cpu(), baselines=(other,))))
    assert by_key(answer(elsewhere, estimates, q), "alone:CPU").forecast.decode.value > 8


def test_splits_that_were_counted_replace_the_estimate(estimates: Estimates, q: float) -> None:
    """More splits, slower; the count is shown."""
    asked = question(mixture(expert_mb=900), rig(card(), cpu()))
    many = replace(asked, splits=SplitCount(count=400, source="a log"))
    plain = by_key(answer(asked, estimates, q), "resident:CUDA0+CPU").forecast
    counted = by_key(answer(many, estimates, q), "resident:CUDA0+CPU").forecast
    assert counted.decode.value < plain.decode.value
    assert any("400 graph splits" in term.because for term in counted.terms)


def test_peer_access_and_fitted_splits_are_used(estimates: Estimates, q: float) -> None:
    """Facts about a pair of cards change what a split between them costs."""
    cards = (card(gib=16), card("CUDA1", gib=16), cpu())
    pair = PairFacts(a="CUDA0", b="CUDA1", peer_access=measured(True, "driver"))
    asked = question(dense(layer_mb=330), rig(*cards))
    near = replace(asked, rig=rig(*cards, links=(pair,)))
    at = [by_key(answer(x, estimates, q), "parallel:CUDA0+CUDA1").forecast for x in (asked, near)]
    assert at[1].decode.value > at[0].decode.value
    dear = replace(near, rig=rig(*cards, links=(replace(pair, sync_us=measured(5000.0, "run")),)))
    layers = [by_key(answer(x, estimates, q), "layers:CUDA0+CUDA1").forecast for x in (near, dear)]
    assert layers[1].decode.value < layers[0].decode.value


def test_the_deciding_number_tells_where_the_verdict_turns(estimates: Estimates, q: float) -> None:
    """Its value, its unit, and the value at which the gain vanishes; and how to measure it."""
    machine = rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu())
    found = by_key(
        answer(question(dense(), machine), estimates, q), "parallel:CUDA0+CUDA1"
    ).recommendation
    assert re.search(r"\d+ GB/s; at \d+ both are as fast", found.decides)
    assert "--baseline" in found.measure


def drafter(**changes: object) -> DraftQuestion:
    """A small model that might draft."""
    base = DraftQuestion(model=dense(layers=16, layer_mb=60), tokens=TokenLists.EQUAL)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_a_drafter_of_unknown_acceptance_is_measure_first_with_its_break_even(
    estimates: Estimates, q: float
) -> None:
    """No gain is given, but the p that would be needed."""
    machine = rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu())
    found = by_key(
        answer(question(dense(), machine, draft=drafter()), estimates, q), "drafter:CUDA1"
    )
    assert found.recommendation.call is Call.MEASURE_FIRST
    assert found.forecast.gain is None
    assert re.search(r"break-even p 0\.\d{3} against no drafting", found.recommendation.decides)
    assert any("accepts an external drafter" in note for note in found.option.notes)
    assert any("token lists: checked" in note for note in found.option.notes)


def test_another_tokenizer_is_no_go(estimates: Estimates, q: float) -> None:
    """A drafter has to speak the target's tokens exactly."""
    asked = question(
        dense(), rig(card(), cpu()), draft=drafter(tokens=TokenLists.DIFFERENT, device="CPU")
    )
    found = by_key(answer(asked, estimates, q), "drafter:CPU")
    assert found.recommendation.call is Call.NO_GO
    assert "token list" in found.recommendation.reason


def test_a_drafter_is_held_against_the_targets_own_head(estimates: Estimates, q: float) -> None:
    """A target with its own head is the harder rival, and an option itself."""
    asked = question(
        dense(nextn=True),
        rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu()),
        draft=drafter(tokens_per_round=2.5, acceptance_source="--accepted"),
    )
    found = answer(asked, estimates, q)
    own = by_key(found, "own-head:alone:CUDA0")
    other = by_key(found, "drafter:CUDA1")
    assert own.forecast.gain is not None
    assert other.forecast.gain is not None
    assert own.forecast.gain.value > other.forecast.gain.value
    numbers = [
        float(re.search(r"p (0\.\d+)", note)[1])  # type: ignore[index]
        for note in other.option.notes
        if "break-even" in note
    ]
    assert numbers[0] < numbers[1]
    assert "-md DRAFT.gguf" in other.option.flags[0].flags
    assert other.option.flags[0].flags.startswith("-dev CUDA0")


def test_a_measured_v_and_a_measured_drafter_are_used(estimates: Estimates, q: float) -> None:
    """R and V come from measurements where they are given."""
    asked = question(
        dense(),
        rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu()),
        baselines={"CUDA0": Speeds(decode_tok_s=40.0)},
        draft=drafter(tokens_per_round=3.0, tok_s=400.0, verify={4: 1.5}),
    )
    found = by_key(answer(asked, estimates, q), "drafter:CUDA1")
    assert found.forecast.gain is not None
    assert found.forecast.gain.value == pytest.approx(3.0 / (3 * 0.1 + 1.5), rel=0.02)


def test_integrated_memory_adds_nothing(estimates: Estimates, q: float) -> None:
    """A split between an APU and the CPU of one memory is not an option, and the answer says so."""
    found = answer(question(mixture(), rig(apu(), cpu(gb_s=256.0))), estimates, q)
    assert {ranked.option.family for ranked in found.ranked} == {OptionFamily.ALONE}
    whats = [item.what for item in found.not_helpful]
    assert "a split between ROCm0 and CPU" in whats
    assert any("fencing" in what for what in whats)


def test_streaming_is_bounded_by_misses_over_the_link(estimates: Estimates, q: float) -> None:
    """Misses × bytes take their time on the link, whatever the card does."""
    found = by_key(answer(question(mixture(), strix()), estimates, q), "streamed:CUDA0")
    assert found.recommendation.call is Call.NO_GO
    assert "ms of the link" in found.option.notes[0]
    assert found.forecast.decode.value < 3


def test_an_empty_rig_and_a_model_too_large_for_any_have_answers(
    estimates: Estimates, q: float
) -> None:
    """Nothing to place on, nothing that fits: NO-GO, without a rival."""
    nothing = answer(question(dense(), rig()), estimates, q)
    assert nothing.ranked == ()
    assert nothing.call is Call.NO_GO
    huge = answer(question(mixture(expert_mb=9000), rig(card(), cpu(), gib=64)), estimates, q)
    assert huge.rival is None
    assert huge.call is Call.NO_GO
    assert all(ranked.recommendation.call is Call.NO_GO for ranked in huge.ranked)


def test_devices_of_one_pool_share_what_is_free(estimates: Estimates, q: float) -> None:
    """Tables on the host and weights on an APU fill the same memory."""
    machine = rig(apu(gib=108), cpu(gb_s=256.0), gib=104)
    found = by_key(answer(question(mixture(expert_mb=2240), machine), estimates, q), "alone:ROCm0")
    assert found.recommendation.fit is Fit.NO
    assert found.option.fills[0].used > GIB


def test_a_second_card_beside_a_host_that_computes_the_experts_is_not_go(
    estimates: Estimates, q: float
) -> None:
    """The placement of four published losses: no peer access, 160 splits and more a token."""
    host = replace(
        cpu(server=True),
        bandwidth_specified_gb_s=None,
        bandwidth_measured_gb_s=measured(598.0, "x"),
    )
    pair = PairFacts(a="CUDA0", b="CUDA1", peer_access=measured(False, "driver"))
    machine = rig(
        card(gib=32, gb_s=1792.0, link=63.0),
        card("CUDA1", gib=24, gb_s=1008.0, link=31.5),
        host,
        gib=768,
        links=(pair,),
    )
    model = mixture(layers=94, expert_mb=2567, trunk_mb=80)
    asked = question(model, machine, ubatch=2048)
    found = by_key(answer(asked, estimates, q), "resident:CUDA0+CUDA1+CPU")
    assert found.forecast.gain is not None
    assert found.forecast.gain.value < 1
    assert found.recommendation.call in (Call.NO_GO, Call.MEASURE_FIRST)
    assert "between the cards" in found.recommendation.decides
    assert fits(found.option.fills) is Fit.YES
    expression = re.search(r'-ot "(.*)=CPU"', found.option.flags[0].flags)[1]  # type: ignore[index]
    slow = [i for i in range(94) if re.search(expression, f"blk.{i}.ffn_up_exps.weight")]
    assert f"experts of {len(slow)} of 94 layers" in found.option.title
    near = replace(pair, peer_access=measured(True, "driver"))
    peers = replace(asked, rig=replace(machine, links=(near,)))
    better = by_key(answer(peers, estimates, q), "resident:CUDA0+CUDA1+CPU")
    assert better.forecast.decode.value > found.forecast.decode.value


def test_a_speed_that_no_placement_explains_is_taken_for_something_else(
    estimates: Estimates, q: float
) -> None:
    """An incumbent that drafts is faster than any device alone: no row is marked as it."""
    asked = question(dense(), rig(card(), cpu()), incumbent=Speeds(decode_tok_s=90.0))
    found = answer(asked, estimates, q)
    assert not any(ranked.incumbent for ranked in found.ranked)
    assert found.call is Call.NO_GO


def shares_of(ranked: Ranked) -> list[float]:
    """What ``-ts`` says."""
    told = re.search(r"-ts ([\d.,]+)", ranked.option.flags[0].flags)
    assert told is not None
    return [float(share) for share in told[1].split(",")]


def test_shares_of_a_parallel_split_follow_the_speed_that_each_card_is_believed_to_have(
    estimates: Estimates, q: float
) -> None:
    """An unknown card has that of its class, a measured one its own; never a share of zero."""
    unknown = card("CUDA1", gib=24, gb_s=None)
    known = replace(card(gb_s=None), bandwidth_measured_gb_s=measured(300.0, "a copy test"))
    asked = question(dense(), rig(known, unknown))
    first, second = shares_of(by_key(answer(asked, estimates, q), "parallel:CUDA0+CUDA1"))
    assert first == pytest.approx(0.37, abs=0.04)
    assert first + second == pytest.approx(1.0)
    slow = replace(asked, baselines={"CUDA1": Speeds(decode_tok_s=8.0)})
    assert shares_of(by_key(answer(slow, estimates, q), "parallel:CUDA0+CUDA1"))[1] < 0.5


def test_a_parallel_share_is_no_larger_than_its_card_where_the_other_has_room(
    estimates: Estimates, q: float
) -> None:
    """A fast small card beside a slow large one is filled and no more."""
    machine = rig(card(gib=8), card("CUDA1", gib=24, gb_s=360.0))
    found = by_key(answer(question(dense(), machine), estimates, q), "parallel:CUDA0+CUDA1")
    assert fits(found.option.fills) is Fit.YES
    assert shares_of(found)[0] < 0.5


def test_a_card_without_a_share_is_no_parallel_split(estimates: Estimates, q: float) -> None:
    """So slow a card is left out, rather than named with a share of zero."""
    machine = rig(card(gb_s=1800.0), card("CUDA1", gib=24, gb_s=5.0))
    found = answer(question(dense(), machine), estimates, q)
    assert "parallel:CUDA0+CUDA1" not in keys(found)


@pytest.mark.parametrize("known", [None, 936.0])
def test_two_endpoints_are_offered_also_where_a_speed_is_only_assumed(
    known: float | None, estimates: Estimates, q: float
) -> None:
    """A class's middle decides whether a second endpoint is worth its memory."""
    machine = rig(card(gb_s=known), card("CUDA1", gib=24, gb_s=None))
    found = answer(question(dense(), machine, slots=2), estimates, q)
    assert any(key.startswith("endpoints:") for key in keys(found))
