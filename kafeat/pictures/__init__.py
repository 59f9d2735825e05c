"""Pictures of maps, drawn by matplotlib."""
