"""Tests of triage/options."""
