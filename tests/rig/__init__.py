"""Tests of rig."""
