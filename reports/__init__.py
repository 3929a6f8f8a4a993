"""Builders that turn a judged run into a text to paste, a page or a machine format."""
