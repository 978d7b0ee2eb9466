"""Every sentence that a person or a model reads, and the language in which they read it."""
