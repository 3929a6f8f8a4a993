"""Tests of gguf."""
