"""Readers and writers of tables, one file a format. Import the submodules; this one loads nothing."""
