"""Cosine features: frequency distributions and ways to draw frequencies."""
