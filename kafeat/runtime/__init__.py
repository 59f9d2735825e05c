"""Run chunks of rows in threads, and parts of data sets on engines."""
