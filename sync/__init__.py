"""The product without its interfaces. Start at `sync.app.open_app`."""

__version__ = "0.1.0"
