"""The quality of a map: its error against the exact kernel, and the score of a learner on its features."""
