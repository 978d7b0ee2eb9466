"""Read statements of the user in a message: whose sentence it is, certain forms, and a learned scorer."""
