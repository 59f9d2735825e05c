"""One reader for each input format."""
