"""Formulas, without file access."""
