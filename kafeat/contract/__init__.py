"""The contract of a kind: the step, its inputs, and the description of its parameters."""
