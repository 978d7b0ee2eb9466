"""Dates that statements name."""
