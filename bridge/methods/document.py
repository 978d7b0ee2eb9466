"""`memory/save`, `memory/history`, `memory/restore`, `memory/resolve`: the document as a whole."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync import contract, published

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


async def save(context: Context[Door], params: Save) -> published.EditedJson:
    app = await context.app.opened()
    document = app.document_to_write()
    return contract.edited(await document.save(params.document, params.base_sha256, meant=params.allow_loss))


async def history(context: Context[Door], params: History) -> published.HistoryJson:
    app = await context.app.opened()
    return contract.history(await app.document.versions.history(params.limit))


async def restore(context: Context[Door], params: Restore) -> published.EditedJson:
    app = await context.app.opened()
    return contract.edited(await app.document_to_write().restore(params.sha256))


async def resolve(context: Context[Door], params: Resolve) -> published.EditedJson:
    app = await context.app.opened()
    edited = await app.document_to_write().resolve(params.answer)
    view = await app.document.view()
    return {"operations": [], "sha256": view.sha256} if edited is None else contract.edited(edited)


METHODS: Final[list[Method[Door, Any]]] = [
    Method("memory/save", Save, save, "Save a whole document, as a hand edit of what load showed."),
    Method("memory/history", History, history, "The versions of the document, newest first."),
    Method("memory/restore", Restore, restore, "Bring a version back, as new events."),
    Method("memory/resolve", Resolve, resolve, "Answer a mass delete or erasure: accept it, or keep what was there."),
]
