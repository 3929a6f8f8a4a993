"""What measured points teach: priors and points come in, estimates and intervals go out.

Of an option's numbers the unknowns in its time are fitted here (`fit`), and its interval is made
here (`uncertainty`, `scoring`, `interval`).
"""
