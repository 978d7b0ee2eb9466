"""The command line: one file per noun; each parses, calls a method of the table, prints."""
