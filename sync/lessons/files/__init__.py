"""The JSON files of the lessons (seed 003), and the import of such files."""
