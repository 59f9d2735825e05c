"""Chunks through threads, and parts through engines."""
