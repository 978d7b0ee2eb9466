"""What the rules of redaction answer."""

from typing import TypedDict


class RedactionCheckJson(TypedDict):
    """`text`: as it would be kept; `counts`: how often each kind was found, by the name its placeholder bears."""

    text: str
    counts: dict[str, int]
    total: int


class RedactedFileJson(TypedDict):
    """`written`: where the redacted text went; null for a dry run and for standard output."""

    source: str
    counts: dict[str, int]
    total: int
    written: str | None


class RescanJson(TypedDict):
    """`events`: how many the log has; `corrected`: those whose payload changes, or would; `counts` by kind.

    `unreadArchives`: archives of retention that could not be read and are left as they are.
    """

    events: int
    corrected: list[str]
    counts: dict[str, int]
    applied: bool
    unreadArchives: list[str]
