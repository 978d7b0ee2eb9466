"""The JSON files of the lessons, and the import of such files."""
