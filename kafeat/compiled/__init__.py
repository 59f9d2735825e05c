"""Loops in C for what NumPy needs several passes for, if they could be built here."""
