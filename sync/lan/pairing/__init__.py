"""Pairing by code: two devices that no cloud introduces trust each other from then on."""
