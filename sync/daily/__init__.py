"""Daily records (seed 000): what each session was about, by day, in Markdown files that a person may read and edit.

Glossary
    record   what is kept of one session: topic, key facts, code, tags, marks. Events are the truth about it.
    book     all records as the events tell them.
    page     the records of one day in one place, as the Markdown file of seed 000 §3.2.
    place    a folder `.cursor/skills/memories`: a project's, or the one in the home.
    deed     an event that changes a record; each can be undone.
"""
