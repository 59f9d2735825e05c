"""The command line. Each command has a file that parses its arguments, calls a job and shows the result."""
