"""A record and its judgment come in, text goes out: Markdown, JSON, HTML, JUnit.

Pure but for `formats`, which asks once what this machine's texts to hide are.
"""
