"""One writer for each output format."""
