"""One matrix from its plan to its last run: what is run next, and what became of each run.

`schedule`, `state` and `effect` are pure; `loop` is where launching, reading, storing and
judging meet.
"""
