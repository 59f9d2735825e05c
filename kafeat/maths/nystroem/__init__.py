"""Features from landmarks."""
