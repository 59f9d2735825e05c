"""Compare maps on held-out rows."""
