"""Run chunks in threads, and parts on engines."""
