"""A record and its judgment come in, a report goes out, in each format that `formats` lists.

Pure but for `formats`, which asks once what this machine's texts to hide are.
"""
