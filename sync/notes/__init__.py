"""Notes: curated memory of a project as Markdown files, with governance and an audit in the log."""
