"""The nouns that travel the road: what is planned, what came of it, what it was judged to be.

Frozen values and enums only; a change is a new object. Imports nothing of this package but
errors, and touches nothing outside.
"""
