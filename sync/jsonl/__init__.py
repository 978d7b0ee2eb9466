"""The JSONL export: the log as files that any program can read. It can be deleted and rebuilt.

Files: `events/<month>/project_<id>_events.jsonl` with an `.idx` beside it, `sessions/<month>/<id>.meta.json`, and
`index/*.json`. The month (`2026-02`) is that of an event's own time, in UTC. A line is one event.
"""
