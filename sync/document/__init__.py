"""The Markdown file a person owns, the app's SQLite cache, and how both become events and back.

Pure: `model`, `parse`, `render`, `edit`, `plan`, `summary`, `prompt`, `digest`, `labels`, `template`,
`capture`.
The document that all devices share: `shared` (its decisions, the fold), `deeds`, `entry_fold`, `copies`, `overlay`,
`canonical`, `hand`, pure as well.
Touching the world: `store` (SQL), `watcher`, `surface` (reading and writing the file), `app_cache`, `memory_file`,
`sharing` (the shared document kept level with the log).
"""
