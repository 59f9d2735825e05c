"""The work of each command, without the parsing of its arguments: jobs on files and on data in memory."""
