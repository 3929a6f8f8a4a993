"""Tests of triage/learn."""
