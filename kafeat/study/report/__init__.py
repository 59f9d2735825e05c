"""The HTML report of an evaluation and its figures."""
