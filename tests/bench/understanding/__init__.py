"""Measurements of what is read and kept in messages."""
