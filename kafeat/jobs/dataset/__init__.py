"""Transform a data set of many files."""
