"""Strata: its binaries, its devices and above all its logs."""
