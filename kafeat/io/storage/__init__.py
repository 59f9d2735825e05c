"""Storage: local files, object stores, and data sets of many files."""
