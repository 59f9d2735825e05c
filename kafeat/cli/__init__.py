"""The command line, with one file for each command, which parses arguments, calls a job and shows the result."""
