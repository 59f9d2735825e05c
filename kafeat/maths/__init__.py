"""Formulas, without files."""
