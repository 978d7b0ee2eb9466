"""The devices of an account: what the replicated events say of them, and how they sign."""
