"""Attacks on the program: what it was given, and what must not come of it."""
