"""The version, in its own file so that reading it imports nothing."""

__version__ = "1.0.0"
