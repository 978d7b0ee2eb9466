"""A command carried out, and what the person is told. Which words are a command is decided in `command.py`.

The caller hands in how to search (`Searcher`) and how to erase (`ErasurePort`).

Decisions
    A deletion by words means everything that has them. If that is one daily record alone, it is removed, which `撤销`
    takes back. Otherwise the first answer lists what would go, and `删除记忆: 火锅 确认` erases it for good.
    "Don't save this" erases at once what was saved of the conversation: an answer that waits for a confirmation would
    be a promise that is not kept yet.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from sync.clock import from_unix_ms, to_unix_ms
from sync.daily import config
from sync.daily.commands.erasure_replies import (
    RECORD_EVENT_TYPES,
    ErasurePort,
    describe_events,
    not_saved_reply,
    pending_erasure_note,
)
from sync.daily.config import DailyConfig, Provider
from sync.daily.conversation import current_conversation
from sync.daily.conversation.command_parser import CommandKind, SpokenCommand, is_confirmation, split_confirmation
from sync.daily.conversation.current_conversation import ConversationEvents
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import Record, normalised_content
from sync.daily.pages.page_folders import EffectiveOptions
from sync.daily.record_service import ChangeResult, RecordRequest
from sync.daily.records.maintenance import match_records, names_records
from sync.daily.service import DailyService
from sync.errors import InvalidInput
from sync.log.event_types import SESSION_MARKED, SESSION_REMOVED
from sync.log.model import Event
from sync.log.sessions import session_store

MAX_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class CommandSearch:
    """A search as `config.json` has it: at most so many, not older than a day or however old, with these weights."""

    query: str
    limit: int
    since: str | None
    keyword: float
    semantic: float
    decay: float
    project_path: str | None


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where a command was given: the session, what was said in it, the project."""

    session_id: str | None = None
    turns: tuple[SummaryTurn, ...] = ()
    project_path: str | None = None


@dataclass(frozen=True, slots=True)
class CommandReply:
    """`done`: whether something was done or found; `message` is for the person."""

    command: SpokenCommand
    done: bool
    message: str
    records: tuple[Record, ...] | None = None
    hits: tuple[Any, ...] | None = None
    page: str | None = None
    options: EffectiveOptions | None = None
    event_id: str | None = None


Searcher = Callable[[CommandSearch], Awaitable[Sequence[Any]]]


def configured_search(
    query: str, value: DailyConfig, today: str, project_path: str | None, provider: Provider
) -> CommandSearch:
    """A search by the options of `config.json` (seed 000 §5 and §8), where `provider` makes the vectors there are."""
    retrieval = value.retrieval
    method = retrieval.method if value.semantic.enabled and value.semantic.provider == provider else "keyword"
    keyword, semantic = {"keyword": (1.0, 0.0), "semantic": (0.0, 1.0), "hybrid": (0.4, 0.6)}[method]
    since = date.fromisoformat(today) - timedelta(days=retrieval.search_scope_days)
    return CommandSearch(
        query, retrieval.max_results, since.isoformat(), keyword, semantic, retrieval.time_decay_rate, project_path
    )


class CommandHandler:
    """Carries out one command after the other."""

    def __init__(self, daily: DailyService, search: Searcher, eraser: ErasurePort, provider: Provider) -> None:
        self._daily = daily
        self._search = search
        self._erasure = eraser
        self._provider = provider
        self._handlers: dict[CommandKind, Callable[[SpokenCommand, CommandContext], Awaitable[CommandReply]]] = {
            CommandKind.SAVE: self._save,
            CommandKind.SKIP: self._skip,
            CommandKind.SENSITIVE: self._sensitive,
            CommandKind.SEARCH: self._search_memories,
            CommandKind.SHOW: self._show,
            CommandKind.DELETE: self._delete,
            CommandKind.CLEAN: self._clean,
            CommandKind.SETTINGS: self._settings,
            CommandKind.UNDO: self._undo,
        }

    async def handle(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Raises InvalidInput where the command cannot be understood, StorageError."""
        reply = await self._handlers[command.kind](command, context)
        await self._daily.reconcile()
        return reply

    async def _save(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if command.argument:
            done = await self._daily.record_service.add(
                None, None, normalised_content(command.argument), context.project_path, ()
            )
            return _saved_reply(command, done)
        resumed = await self._resume(context)
        session_id = context.session_id or (None if context.turns or resumed else await self._daily.latest_session())
        given = RecordRequest(session_id, context.turns, project_path=context.project_path, is_explicit=True)
        done = await self._daily.record_service.record_conversation(given)
        if resumed and done.record is None:
            told = (
                "好的，之后的内容会保存；已清除的内容不会恢复",
                "Saving again from here; what was erased does not come back",
            )
            return CommandReply(command, True, _in_language(command, *told), ())
        return _saved_reply(command, done)

    async def _resume(self, context: CommandContext) -> bool:
        """End the pause of this conversation, if there is one."""
        events = self._daily.events
        paused = await events.database.read(
            lambda connection: session_store.read_paused_sessions(connection, events.device_id)
        )
        session_id = context.session_id
        if session_id is None and paused.unnamed_since_ms is None and not context.turns and paused.session_ids:
            session_id = await self._daily.latest_session()
        on = paused.unnamed_since_ms is not None if session_id is None else session_id in paused.session_ids
        if on:
            await self._daily.record_service.set_skipped(session_id, on=False)
        return on

    async def _skip(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        talk = await self._talk(context.session_id)
        event_id = await self._daily.record_service.set_skipped(
            talk.session_id
        )  # first: from now on nothing more of it is recorded
        talk = await self._talk(talk.session_id)
        erased = await self._erasure.erase_events(await self._daily.record_service.event_ids_of(talk))
        since = "" if talk.since_ms is None else self._format_time(talk.since_ms)
        minutes, named = self._daily.worker.idle_ms // 60_000, context.session_id is not None
        message = not_saved_reply(talk, erased, since, was_named=named, minutes=minutes, chinese=command.is_chinese)
        return CommandReply(command, True, message, event_id=event_id)

    async def _talk(self, session_id: str | None) -> ConversationEvents:
        """A session; without an id the conversation that is going on on this device, or an empty one."""
        events, now_ms, idle_ms = self._daily.events, to_unix_ms(self._daily.clock.now()), self._daily.worker.idle_ms
        if session_id is not None:
            return await events.database.read(
                lambda connection: current_conversation.conversation_of_session(connection, session_id)
            )
        return await events.database.read(
            lambda connection: current_conversation.latest_conversation(
                connection, events.device_id, now_ms=now_ms, idle_ms=idle_ms
            )
        )

    async def _sensitive(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        done = await self._skip(command, context)
        return replace(done, message=_in_language(command, "已标记为敏感。", "Marked as sensitive. ") + done.message)

    def _format_time(self, unix_ms: int) -> str:
        now, then = self._daily.clock.now(), self._daily.clock.local(from_unix_ms(unix_ms))
        return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"

    async def _search_memories(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if not command.argument:
            message = _in_language(
                command, "要搜索什么？例如：搜索记忆: 火锅", "What for? As in search memory: hot pot"
            )
            return CommandReply(command, False, message, hits=())
        value = (await self._daily.options(context.project_path)).value
        asked = configured_search(command.argument, value, self._daily.today, context.project_path, self._provider)
        hits = tuple(await self._search(asked))
        told = f"找到 {len(hits)} 条记忆", f"{len(hits)} found"
        if not hits and (older := len(await self._search(replace(asked, since=None)))):
            days = value.retrieval.search_scope_days
            told = (
                f"最近 {days} 天没有；更早的有 {older} 条（记忆设置: retrieval.search_scope_days 决定找多远）",
                f"Nothing in the last {days} days; {older} older (retrieval.search_scope_days says how far to look)",
            )
        return CommandReply(command, bool(hits), _in_language(command, *told), hits=hits)

    async def _show(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        day = command.argument or self._daily.today
        text, records = await self._daily.day_page(day, None)
        message = _in_language(command, f"{day} 有 {len(records)} 条记忆", f"{len(records)} of {day}")
        return CommandReply(command, bool(records), message, tuple(records), page=text)

    async def _delete(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        words, sure = split_confirmation(command.argument)
        if not words:
            asks = "要删除什么？例如：删除记忆: 火锅", "Delete what? As in delete memory: hot pot"
            return CommandReply(command, False, _in_language(command, *asks))
        records = match_records((await self._daily.current_records()).visible(), words)
        if records and names_records(records, words):
            return await self._remove_matching(command, records)
        found = await self._erasure.find_events(words)
        if not found and not records:
            return CommandReply(command, False, _in_language(command, "没有找到这条记忆", "Nothing matches"), ())
        if not sure and len(records) == 1 and all(event.type in RECORD_EVENT_TYPES for event in found):
            return await self._remove_matching(command, records)
        if sure:
            return await self._erase_matching(command, found)
        listed = describe_events(found, chinese=command.is_chinese)
        told = (
            f"找到：{listed}。还没有删除；说“删除记忆: {words} 确认”永久清除（不能撤销）",
            f'Found: {listed}. Nothing is deleted yet; "delete memory: {words} confirm" erases it for good',
        )
        return CommandReply(command, False, _in_language(command, *told), tuple(records[:MAX_LISTED]))

    async def _remove_matching(self, command: SpokenCommand, records: Sequence[Record]) -> CommandReply:
        """Remove the one daily record that is meant; show several."""
        if len(records) != 1:
            several = (
                "有多条每日记忆匹配，请用日期和编号指明一条",
                "Several daily records match: name one by date and number",
            )
            return CommandReply(command, False, _in_language(command, *several), tuple(records[:MAX_LISTED]))
        done = await self._daily.record_service.remove(records[0].record_id)
        topic = records[0].content.topic
        told = (
            f"已从每日记忆删除：{topic}（说“撤销”可恢复）",
            f'Deleted the daily record: {topic} ("undo" brings it back)',
        )
        return CommandReply(command, True, _in_language(command, *told), tuple(records), event_id=done.event_id)

    async def _erase_matching(self, command: SpokenCommand, events: Sequence[Event]) -> CommandReply:
        """Erase these events for good, and everything else that was said of the same daily records."""
        named = [event.payload.get("record_id") for event in events if event.type in RECORD_EVENT_TYPES]
        ids = {record_id for record_id in named if isinstance(record_id, str)}
        these = ConversationEvents(None, event_ids=tuple(event.event_id for event in events))
        erased = await self._erasure.erase_events(await self._daily.record_service.event_ids_of(these, ids))
        listed = describe_events(events, chinese=command.is_chinese)
        told = f"已永久清除：{listed}。", f"Erased for good: {listed}."
        return CommandReply(
            command,
            erased.count > 0,
            _in_language(command, *told) + pending_erasure_note(erased, chinese=command.is_chinese),
            (),
        )

    async def _undo(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Take back the last deletion of a daily record; an erasure cannot be taken back."""
        del context
        own = [
            event
            for event in (await self._daily.current_records()).changes
            if event.device_id == self._daily.events.device_id
        ]
        last = next((event for event in reversed(own) if event.type in {SESSION_REMOVED, SESSION_MARKED}), None)
        if last is None:
            told = "没有可以撤销的删除；永久清除的内容不能恢复", "No deletion to undo; what was erased cannot come back"
            return CommandReply(command, False, _in_language(command, *told))
        done = await self._daily.record_service.undo(last.event_id)
        topic = done.record.content.topic if done.record else ""
        told = f"已撤销：{topic}", f"Undone: {topic}"
        return CommandReply(
            command, True, _in_language(command, *told), (done.record,) if done.record else (), event_id=done.event_id
        )

    async def _clean(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        sure = is_confirmation(command.argument)
        found = await self._daily.expire_old_records(dry_run=not sure)
        told = f"已清理 {len(found)} 条过期记忆", f"{len(found)} expired memories were put away"
        if not found:
            told = "没有过期的记忆", "No memories are expired"
        elif not sure:
            told = (
                f"有 {len(found)} 条过期记忆；说“清理旧记忆: 确认”来清理",
                f'{len(found)} are expired; say "clean up old memories: confirm"',
            )
        return CommandReply(command, sure and bool(found), _in_language(command, *told), tuple(found))

    async def _settings(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if not command.argument:
            options = await self._daily.options(context.project_path)
            return CommandReply(command, True, _in_language(command, "当前记忆设置", "The settings"), options=options)
        option, equals, value = command.argument.replace("＝", "=").partition("=")
        if not equals:
            raise InvalidInput("an option is set as name=value", field="text", hint="recording.auto_save=false")
        options = await self._daily.set_option(
            context.project_path, option.strip(), config.parse_value(value), for_project=False
        )
        return CommandReply(command, True, _in_language(command, "设置已保存", "Saved"), options=options)


def _saved_reply(command: SpokenCommand, result: ChangeResult) -> CommandReply:
    if result.record is None:
        return CommandReply(command, False, _in_language(command, "没有可以保存的内容", "There is nothing to save"), ())
    topic = result.record.content.topic
    message = _in_language(command, f"已记住：{topic}", f"Saved: {topic}")
    return CommandReply(command, True, message, (result.record,), event_id=result.event_id)


def _in_language(command: SpokenCommand, chinese: str, english: str) -> str:
    return chinese if command.is_chinese else english
