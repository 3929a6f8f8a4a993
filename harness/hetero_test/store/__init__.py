"""The run directory: runs and manifest come in, files go out, and back again.

Writes atomically and refuses what it did not write; judges nothing.
"""
