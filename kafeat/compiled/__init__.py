"""Optional loops in C, each of which does in one pass what NumPy does in several."""
