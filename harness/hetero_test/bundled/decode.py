"""The loop: read the prompt, then draft, verify, accept, roll back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.drafter import look_up
from hetero_test.bundled.failures import refused
from hetero_test.bundled.inject import faulty_drafts
from hetero_test.bundled.work import DraftCounts

if TYPE_CHECKING:
    from hetero_test.bundled.arith import Ints
    from hetero_test.bundled.drafter import Drafter
    from hetero_test.bundled.job import Job
    from hetero_test.bundled.kv import KeysValues
    from hetero_test.bundled.model import Model
    from hetero_test.bundled.sampler import Pick

_PROGRESS_EVERY = 32  # tokens


@dataclass(frozen=True, slots=True)
class Proposal:
    """Drafts for one window, and whether they were looked up in the tokens so far."""

    tokens: Sequence[int] = ()
    looked_up: bool = False


class Decoder:
    """One prompt and what is made of it.

    Args:
        drafter: None where there is none.
        kv: the model's memory, empty.
        pick: turns logits into a token.
    """

    def __init__(
        self,
        *,
        model: Model,
        drafter: Drafter | None,
        kv: KeysValues,
        pick: Pick,
        job: Job,
    ) -> None:
        flags = job.flags
        self.counts = DraftCounts()
        self.ended = False
        self._model = model
        self._drafter = drafter
        self._kv = kv
        self._pick = pick
        self._flags = flags
        self._faults = job.faults
        self._vocab = job.pack.shape.vocab
        self._eos = frozenset(flags.eos_ids or job.pack.eos_ids if flags.stop_eos else ())
        self._history = list(job.prompt)
        self._prompt_tokens = len(job.prompt)
        self._log = job.log
        self._used: Ints | None = None
        self._captured: set[int] = set()

    @property
    def made(self) -> list[int]:
        """The tokens made so far; a window may have made more than were asked for."""
        return self._history[self._prompt_tokens :][: self._flags.max_new]

    @property
    def done(self) -> bool:
        """Whether enough was made, or the end of the sequence."""
        return self.ended or len(self.made) >= self._flags.max_new

    def read_prompt(self, chunk: int) -> int:
        """Read all of the prompt but its last token, ``chunk`` tokens at a time.

        Returns:
            The number of chunks; a chunk of 0 reads token by token.
        """
        ids = self._history[:-1]
        size = chunk or 1
        for start in range(0, len(ids), size):
            self._model.read(ids[start : start + size], self._kv, last_only=True)
        return -(-len(ids) // size)

    def read_draft_prompt(self) -> None:
        """Let the drafter take in the prompt."""
        if self._drafter is not None:
            self._drafter.read_prompt(self._history[:-1])

    def step(self) -> None:
        """Make one token from the last one, without speculation."""
        logits, _ = self._model.read(self._history[-1:], self._kv)
        self._take([self._pick(logits[-1], self._next_index)])

    def round(self, *, plain: bool = False) -> None:
        """One window: the last token and what is drafted to follow it.

        Args:
            plain: verify the last token alone, as the first window of a native pack does.

        Raises:
            EngineStopError: the window does not fit into the context.
        """
        proposal = Proposal() if plain else self._propose()
        drafts = proposal.tokens
        start = self._kv.length
        if start + 1 + len(drafts) > self._flags.max_context:
            raise refused(f"ran out of context at position {start}")
        self._capture(1 + len(drafts))
        index = self._next_index
        logits, routes = self._model.read([self._history[-1], *drafts], self._kv)
        started = perf_counter()
        picked = [self._pick(row, index + offset) for offset, row in enumerate(logits)]
        accepted = 0
        while accepted < len(drafts) and drafts[accepted] == picked[accepted]:
            accepted += 1
        kept = start + accepted + 1
        self._kv.roll_back(kept)
        if self._drafter is not None:
            self._drafter.keep(kept)
        self._take(picked[: accepted + 1])
        self._count(proposal, accepted)
        work = self._model.work
        work.rounds += 1
        work.commit_s += perf_counter() - started
        self._adapt(routes[:, : accepted + 1])

    @property
    def _next_index(self) -> int:
        return len(self._history) - self._prompt_tokens

    def _propose(self) -> Proposal:
        flags = self._flags
        found = look_up(self._history, width=flags.suffix_draft, count=flags.window - 1)
        if found:
            return Proposal(found, looked_up=True)
        count = flags.draft_window - 1
        if self._drafter is None or count < 1:
            return Proposal()
        started = perf_counter()
        drafts = self._drafter.propose(self._history, count=count, least=flags.spec_min_p)
        self._model.work.draft_s += perf_counter() - started
        self.counts.draft_rounds += 1
        return Proposal(
            faulty_drafts(
                drafts, self._faults, round_number=self.counts.draft_rounds, vocab=self._vocab
            )
        )

    def _capture(self, size: int) -> None:
        if size not in self._captured:
            self._captured.add(size)
            self._log.verify(f"captured the {size}-token window (upload no error, sync no error)")

    def _take(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._history.append(token)
            count = self._next_index
            if count % _PROGRESS_EVERY == 0:
                self._log.say(
                    f"position {len(self._history)}, {count} tokens, "
                    f"{self._model.work.rounds} rounds"
                )
            if token in self._eos and count <= self._flags.max_new:
                self.ended = True
                self._log.say(f"end of sequence: token {token} at position {len(self._history)}")
                return

    def _count(self, proposal: Proposal, accepted: int) -> None:
        counts, offered = self.counts, len(proposal.tokens)
        counts.offered += offered
        counts.accepted += accepted
        counts.sizes[1 + offered] += 1
        counts.accepted_per_round[accepted] += 1
        if proposal.looked_up:
            counts.lookup_windows += 1
            counts.lookup_offered += offered
            counts.lookup_accepted += accepted

    def _adapt(self, routes: Ints) -> None:
        flags = self._flags
        if not (flags.adapt_every and flags.adapt_swaps):
            return
        started = perf_counter()
        if self._used is None:
            self._used = np.zeros((len(routes), self._model.experts), np.int64)
        for layer, chosen in enumerate(routes):
            np.add.at(self._used[layer], chosen.ravel(), 1)
        if self._model.work.rounds % flags.adapt_every == 0:
            self.counts.swapped += self._model.residency.swap(self._used, most=flags.adapt_swaps)
        self._model.work.adapt_s += perf_counter() - started
