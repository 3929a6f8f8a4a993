"""Triage: facts, arithmetic, options."""
