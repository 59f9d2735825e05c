"""The HTML reports of evaluations and searches, and their figures."""
