"""The arithmetic: a placement on a rig comes in, time and memory go out, one term a function."""
