"""What a tensor does, by its name.

Names are those of llama.cpp's ``src/llama-arch.cpp``, with the older spelling of Mixtral
files (one tensor an expert) and Ollama's vision prefixes.
"""

from __future__ import annotations

import re

from harness.triage.modelfacts import Role

_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)\Z")
_IN_BLOCK: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"nextn\."), Role.NEXTN),
    (re.compile(r"(?:ssm|time_mix|shortconv|indexer)[._](?!.*norm)"), Role.ATTENTION),
    (re.compile(r"(?:\w+_)?attn_(?!.*norm)"), Role.ATTENTION),
    (re.compile(r"ffn_(?:up|gate|down|gate_up)_(?:ch)?exps\b"), Role.ROUTED_EXPERTS),
    (re.compile(r"ffn_(?:up|gate|down)\.\d+\b"), Role.ROUTED_EXPERTS),
    (re.compile(r"ffn_\w*shexp\b"), Role.SHARED_EXPERTS),
    (re.compile(r"ffn_gate_inp\b|exp_probs_b\b"), Role.ROUTER),
    (re.compile(r"(?:ffn_(?:up|gate|down|gate_up)|channel_mix_\w+)\b"), Role.DENSE_FFN),
    (re.compile(r"\w*(?:engram|ngram)\w*_embd\b"), Role.SIDECAR),
)
_OUTSIDE: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"token_embd\.\w+\Z"), Role.EMBEDDING),
    (re.compile(r"output\.\w+\Z"), Role.OUTPUT),
    (re.compile(r"mtp\.|nextn\."), Role.NEXTN),
    (re.compile(r"(?:v|a|mm|vision|audio)\."), Role.SIDECAR),
    (re.compile(r"(?!.*norm)\w+_embd\b"), Role.SIDECAR),
)


def split_name(name: str) -> tuple[int | None, str]:
    """The number of the block, or None for a tensor of no block; and the name within it."""
    found = _BLOCK.match(name)
    return (int(found[1]), found[2]) if found else (None, name)


def role_of(block: int | None, rest: str) -> Role:
    """The role of a tensor; `Role.OTHER` for norms and everything unknown.

    Args:
        block: the number of the block, None for a tensor of no block.
        rest: the name within it, as `split_name` gives it.
    """
    rules = _OUTSIDE if block is None else _IN_BLOCK
    return next((role for pattern, role in rules if pattern.match(rest)), Role.OTHER)
