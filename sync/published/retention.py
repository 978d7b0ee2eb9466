"""What a plan of retention says, and what came of it."""

from typing import TypedDict


class HeldJson(TypedDict):
    """How many events stay although they are due, by reason."""

    shown: int
    undelivered: int
    followed: int


class BehindJson(TypedDict):
    """A follower that has not taken yet what would go, and how far it has come."""

    name: str
    position: int


class RetentionJson(TypedDict):
    """`before`: what is older is due; `events`, `bytes`: what goes, or would; `archive`: the file that holds it."""

    before: str | None
    mostBytes: int | None
    totalEvents: int
    totalBytes: int
    events: int
    bytes: int
    oldest: str | None
    newest: str | None
    held: HeldJson
    behind: list[BehindJson]
    applied: bool
    archive: str | None
    sha256: str | None
    forgotten: int
