"""The arithmetic before anything is built: whether a split should be built at all."""
