"""`watermarks/*` and `events/verify`: how far other programs have come, and whether the log is sound."""

from typing import Annotated, Any, Final

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams, Params
from sync import contract, published

Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]


class Get(Params, frozen=True):
    name: Name


class Set(Params, frozen=True):
    name: Name
    position: Annotated[int, msgspec.Meta(ge=0)]


async def get(context: Context[Door], params: Get) -> published.WatermarkJson:
    app = await context.app.opened()
    return {"name": params.name, "position": await app.log.watermark(params.name)}


async def put(context: Context[Door], params: Set) -> published.WatermarkJson:
    app = await context.app.opened()
    await app.log.set_watermark(params.name, params.position)
    return {"name": params.name, "position": params.position}


async def verify(context: Context[Door], params: NoParams) -> published.VerifyJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()
    return contract.verified(await app.log.verify(), await app.log.newest_position())


METHODS: Final[list[Method[Door, Any]]] = [
    Method("watermarks/get", Get, get, "How far a follower of the log has come; 0 where it is unknown."),
    Method("watermarks/set", Set, put, "Note how far a follower has come, for its next start."),
    Method("events/verify", NoParams, verify, "Whether the log is sound: numbers, deliveries, pages.", timeout=None),
]
