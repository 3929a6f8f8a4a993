"""hetero-test: whether a model split over unequal accelerators is exact, and what it buys."""
