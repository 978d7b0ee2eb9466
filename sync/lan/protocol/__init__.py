"""What two devices say to each other about events. Pure."""
