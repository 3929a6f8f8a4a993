"""What the builders make of a judged record."""
