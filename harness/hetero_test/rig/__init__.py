"""Facts about the machine: devices, links, memory, processor, each with its source.

Reads the system and the tools of vendors. A fact may be missing, never guessed; nothing here
knows an engine or a verdict.
"""
