"""Check that an output is what a map makes of an input."""
