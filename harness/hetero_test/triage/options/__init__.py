"""The ways in which a model could be placed on a rig, each with the flags that do it.

Of an option's numbers the bytes are made here: what each device reads a token, and what it holds.
"""
