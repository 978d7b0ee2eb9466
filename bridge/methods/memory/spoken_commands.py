"""`memory/command`: spoken commands in Chinese or English."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from bridge.methods.memory import recall
from bridge.methods.memory.daily import Name, Path, Turns, summary_turns
from sync.app import App
from sync.contract import daily as contract
from sync.contract.daily import CommandJson
from sync.contract.recall import HitJson
from sync.daily.commands.command_handler import CommandContext, CommandHandler, CommandSearch
from sync.daily.commands.erasure_replies import ErasurePort
from sync.daily.commands.fact_commands import FactCommands, read_wish
from sync.daily.conversation.command_parser import parse_command, parse_vague_deletion, split_confirmation
from sync.daily.conversation.command_phrases import CommandKind
from sync.recall.relevance.message_signals import asks_for_memory
from sync.understanding.reading.reader import points_back


class Saying(Params, frozen=True):
    """A message and its session. `isFirst`: the first of its session."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
    session_id: Name | None = None
    turns: Turns = ()
    project_path: Path | None = None
    is_first: bool = False


async def run_command(app: App, params: Saying) -> CommandJson:
    """Carry out a spoken command, in Chinese or English."""
    recalls = asks_for_memory(params.text, is_first=params.is_first)
    asked = parse_command(params.text)
    if asked is None or (asked.kind is CommandKind.SAVE and not asked.argument):  # my code is 12, remember it
        asked = read_wish(params.text) or asked
    facts = FactCommands(app.facts(), app.draft_builder.redactor)
    if asked is None and (vague := parse_vague_deletion(params.text)) is not None:
        asked = vague if await facts.find_named(split_confirmation(vague.argument)[0]) else None
    if asked is None:
        return {"command": None, "done": False, "message": "", "recall": recalls}

    async def search(wanted: CommandSearch) -> Sequence[HitJson]:
        weights = recall.Weights(wanted.keyword, wanted.semantic, wanted.decay)
        place, since = wanted.project_path, wanted.since
        asked = recall.Search(wanted.query, wanted.limit, project=place, since=since, weights=weights)
        return (await recall.search(app, asked))["hits"]

    forgetting = app.forgetting
    eraser = ErasurePort(
        app.erasure.find_with_words, app.erasure.erase_and_confirm, forgetting.erase_later, forgetting.undo_newest
    )
    here = CommandContext(
        app.draft_builder.safe_session_id(params.session_id),
        summary_turns(params.turns),
        params.project_path,
        points_back(params.text),
    )
    commander = CommandHandler(app.daily(), search, eraser, app.settings.recall.vector_provider, facts)
    return contract.command_reply_to_json(await commander.handle(asked, here), recall=recalls)
