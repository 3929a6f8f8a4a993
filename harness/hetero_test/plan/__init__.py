"""A matrix file, model flags and a rig come in; probes, variants and cells to launch go out.

Nothing here starts a run; `prepare` asks the engine what it is and what it can, once.
"""
