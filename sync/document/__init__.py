"""The Markdown memory file: a projection of the log that the user edits, and whose edits become events.

`markdown` parses and edits text; `merge` decides what a manual edit means (`three_way`) and merges words; `capture`
turns exchanges into events; `own` brings back the lines of this device's events. `erasure` finds and removes text;
`versions` stores each content; `surfaces` are file, app table and the cloud row; `ownership` tells whose document a
text is; `read` answers `memory/load` and the prompts.
"""
