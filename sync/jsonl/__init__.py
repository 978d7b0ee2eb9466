"""The JSONL tree of seed 002 §3: the log as files that any program can read, a view that can be thrown away.

Glossary
    tree        `events/<month>/project_<id>_events.jsonl` and `.idx`, `sessions/<month>/<id>.meta.json`, `index/…`.
    month       `2026-02` of an event's own time, in UTC.
    line        one event as JSON, with its newline; a function of the event and of whether it is forgotten.
    tail        the last whole line of a file: how far it has come.
"""
