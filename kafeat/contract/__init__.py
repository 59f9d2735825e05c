"""What a kind must be: the step, its inputs, and the description of its parameters."""
