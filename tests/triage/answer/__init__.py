"""Tests of triage/answer."""
