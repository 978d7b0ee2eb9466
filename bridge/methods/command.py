"""`memory/command`: what a person says to his memory, in Chinese or English (seed 000 §9-10)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from bridge.methods import erasing, recall
from bridge.methods.daily import Name, Path, Turns, turns_of
from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync.published.daily import CommandJson
from sync.published.recall import HitJson

if TYPE_CHECKING:  # importing them is what a starting sidecar has not done yet
    from sync.app import App
    from sync.log.model import Event
    from sync.memory.daily.config import Provider


class Saying(Params, frozen=True):
    """A message, and where it was said. `isFirst`: the first of its session."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
    session_id: Name | None = None
    turns: Turns = ()
    project_path: Path | None = None
    is_first: bool = False


async def command(context: Context[Door], params: Saying) -> CommandJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - the room, which a start need not load
    from sync.memory.daily.command import parse, should_recall  # noqa: PLC0415
    from sync.memory.daily.commander import Commander, Here, Wanted  # noqa: PLC0415
    from sync.memory.daily.erasure import Eraser  # noqa: PLC0415

    recalls = should_recall(params.text, is_first=params.is_first)
    asked = parse(params.text)
    if asked is None:
        return {"command": None, "done": False, "message": "", "recall": recalls}

    async def search(wanted: Wanted) -> Sequence[HitJson]:
        weights = recall.Weights(wanted.keyword, wanted.semantic, wanted.decay)
        place, since = wanted.project_path, wanted.since
        asked = recall.Search(wanted.query, wanted.limit, project=place, since=since, weights=weights)
        return (await recall.search(context, asked))["hits"]

    eraser = Eraser(partial(_with_words, app), partial(erasing.erase, app))
    provider: Provider = "openai" if app.settings.recall.embeddings == "api" else "local"
    here = Here(app.intake.session(params.session_id), turns_of(params.turns), params.project_path)
    commander = Commander(app.daily(), search, eraser, provider)
    return contract.reply(await commander.carry_out(asked, here), recall=recalls)


async def _with_words(app: "App", words: str) -> "list[Event]":
    """Every event that has all of these words."""
    from sync.document.choosing import Choice  # noqa: PLC0415 - SQLAlchemy's 200 ms, which a start need not spend

    choice = Choice(words)
    return [] if choice.is_empty else await erasing.matching(app, choice)


METHODS: Final[list[Method[Door, Any]]] = [
    Method("memory/command", Saying, command, "What a person says to his memory, in Chinese or English.", timeout=None),
]
