"""Every door others knock on: JSON-RPC on stdio and the command line. No rules of its own."""
