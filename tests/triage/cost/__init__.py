"""Tests of triage/cost."""
