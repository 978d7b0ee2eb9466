"""Remembers and replicates; knows nothing of who asks. `sync.app` opens it, everything else is a room of it."""

__version__ = "0.1.0"
