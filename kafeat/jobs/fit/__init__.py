"""Fit a map on a sample of an input."""
