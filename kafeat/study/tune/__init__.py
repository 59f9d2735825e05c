"""Choose the config of a map for a table and its label."""
