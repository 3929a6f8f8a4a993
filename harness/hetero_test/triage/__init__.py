"""The arithmetic before anything is built: whether a split should be built at all.

The chain: options (which placements) → cost (their time and memory) → learn (how sure that is) →
answer. `model` says what is placed.
"""
