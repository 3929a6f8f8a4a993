"""Files that others wrote or edited come in, values or one kind of complaint go out.

JSON and TOML are read with bounds, and a complaint says the line. Nothing here knows what a
file is about.
"""
