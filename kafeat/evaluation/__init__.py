"""What a map is worth: its error against the exact kernel, and what a learner makes of it."""
