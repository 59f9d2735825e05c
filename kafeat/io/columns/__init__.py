"""Which columns of a table are read, and as which numbers."""
