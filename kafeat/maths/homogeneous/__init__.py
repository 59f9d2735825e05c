"""Spectra, windows and ratios of homogeneous kernels."""
