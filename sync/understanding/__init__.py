"""Facts about the user and their projects: extracted from what they typed, reconciled, kept true over time."""
