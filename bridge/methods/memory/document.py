"""`memory/save`, `memory/history`, `memory/restore`, `memory/resolve`: the document as a whole."""

from typing import Annotated, Literal

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.contract.document import EditedJson, HistoryJson, edit_to_json, history_to_json

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Save(Params, frozen=True):
    document: str
    base_sha256: Sha256 | None = None
    allow_loss: bool = False


class History(Params, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class Restore(Params, frozen=True):
    """`sha256`: of a version, or the first digits of it (7 or more) that no other version begins with."""

    sha256: str


class Resolve(Params, frozen=True):
    answer: Literal["accept", "restore"]


async def save(app: App, params: Save) -> EditedJson:
    """Save a whole document, as a hand edit of what load showed."""
    document = app.writable_document()
    return edit_to_json(await document.save(params.document, params.base_sha256, confirmed=params.allow_loss))


async def history(app: App, params: History) -> HistoryJson:
    """The versions of the document, newest first."""
    return history_to_json(await app.document.versions.history(params.limit))


async def restore(app: App, params: Restore) -> EditedJson:
    """Restore a version, as new events."""
    return edit_to_json(await app.writable_document().restore(params.sha256))


async def resolve(app: App, params: Resolve) -> EditedJson:
    """Answer a mass deletion or erasure: accept it, or keep the lines."""
    edited = await app.writable_document().resolve(params.answer)
    view = await app.document.view()
    if edited is None:
        return {"operations": [], "sha256": view.sha256, "nothingWaits": True}
    return {"operations": edit_to_json(edited)["operations"], "sha256": view.sha256}
