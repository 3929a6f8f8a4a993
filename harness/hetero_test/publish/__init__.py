"""What may leave this machine: texts come in, texts that may be published go out.

Names, paths and secrets are replaced; characters that nobody can see are spelled out.
"""
