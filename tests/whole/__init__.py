"""Whole matrices, from launch to exit code, on scripted engines."""
