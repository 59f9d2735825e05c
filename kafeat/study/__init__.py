"""Measure the quality of maps: the error against the exact kernel, and the score of a learner on the features."""
