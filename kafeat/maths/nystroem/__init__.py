"""Nyström features: kernel values between rows and landmarks, multiplied by a projection matrix."""
