"""Columns of a table: selection, names, types and conversion to numbers."""
