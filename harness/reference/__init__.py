"""The bundled engine: a small, real mixture-of-experts model behind an engine command line."""
