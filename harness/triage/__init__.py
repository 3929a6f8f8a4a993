"""The arithmetic before anything is built: should this split be built at all?"""
