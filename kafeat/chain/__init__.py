"""Chains of fitted steps, the tiles that pass through them, and their precision."""
