"""Matrix files: the variants of each engine, and the schema that they follow."""
