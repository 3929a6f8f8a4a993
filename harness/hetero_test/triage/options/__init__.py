"""The ways in which a model could be placed on a rig, each with the flags that do it."""
