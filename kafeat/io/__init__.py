"""Readers and writers of tables, one module for each format. Import the submodules: this package loads none."""
