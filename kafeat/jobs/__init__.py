"""The work of each command without its arguments: jobs on files and on data in memory."""
