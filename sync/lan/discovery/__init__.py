"""How the account's devices find each other on the local network."""
