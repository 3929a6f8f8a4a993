"""A matrix file, model flags and a rig come in; probes, variants and cells to launch go out.

What is asked comes as `RunOptions`, from the command line or from Python. Nothing here starts a
run; `prepare` asks the engine what it is and what it can do, once.
"""
