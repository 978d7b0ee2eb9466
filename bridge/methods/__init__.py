"""The JSON-RPC methods, which the command line uses too. Each calls one use case of `sync`."""
