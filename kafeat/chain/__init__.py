"""Fitted steps together: chains, the tiles that go through them, and their precision."""
