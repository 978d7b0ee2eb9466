"""The interfaces of the program: JSON-RPC and the command line. They contain no rules of their own."""
