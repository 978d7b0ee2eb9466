"""What is kept of conversations, in rooms that do not see each other: `daily`, a record of each session by its day."""
