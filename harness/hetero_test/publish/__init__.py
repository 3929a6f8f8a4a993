"""What may leave this machine: texts come in, fit texts go out.

Secrets are replaced, control characters are spelled out.
"""
