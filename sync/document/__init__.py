"""The Markdown file a person owns, the app's SQLite cache, and how both become events and back.

Pure: `model`, `parse`, `render`, `edit`, `plan`, `summary`, `prompt`, `digest`, `labels`, `template`, `capture`.
Touching the world: `store` (SQL), `watcher`, `surface` (reading and writing the file), `app_cache`, `memory_file`.
"""
