"""The bundled engine: exact where it must be, different where it may be, wrong on demand."""
