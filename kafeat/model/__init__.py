"""The feature map and its file."""
