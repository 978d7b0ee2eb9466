"""Daily records: a record for each session, grouped by day in Markdown pages that the user may edit.

A record holds a topic, key facts, code, tags and marks; events are its source of truth, and each change of it can be
undone. A page shows the records of one day in one folder, `.cursor/skills/memories` of a project or of the home.
"""
