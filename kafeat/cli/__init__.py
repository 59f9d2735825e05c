"""The command line: one file a command. It parses arguments, calls a job and shows the result."""
