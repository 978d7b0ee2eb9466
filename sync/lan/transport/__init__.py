"""TLS connections between devices that trust each other."""
