"""Speed, memory and start-up side by side with what a user would use instead. `benchmarks/bench.py` runs it."""
