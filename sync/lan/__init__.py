"""Devices of one account that sync directly, on one network, without the cloud."""
