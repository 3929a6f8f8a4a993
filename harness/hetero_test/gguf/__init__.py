"""Model files in GGUF form: bytes come in, header, tensors and metadata go out.

Reads headers only, never weights, and trusts no number that a file states.
"""
