"""Transform one file."""
