"""What a command does, minus the parsing of its arguments: jobs on names of files, and on data in memory."""
