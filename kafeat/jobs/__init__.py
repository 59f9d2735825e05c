"""The work of each command, without parsing its arguments: jobs on files and on data in memory."""
