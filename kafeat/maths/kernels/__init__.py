"""Exact kernels."""
