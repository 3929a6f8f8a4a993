"""Engine families: how to find, ask, launch and read each."""
