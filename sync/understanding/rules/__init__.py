"""The rules extractor: the words that a user typed, read by grammar and slots, in Chinese and English."""
