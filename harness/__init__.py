"""hetero-test: is a model split over unequal accelerators exact, and what did it buy?"""
