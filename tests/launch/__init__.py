"""One process, from a request to an outcome; with real processes."""
