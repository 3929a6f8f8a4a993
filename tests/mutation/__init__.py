"""Whether a test notices when a rule is removed: ``python -m tests.mutation``."""
