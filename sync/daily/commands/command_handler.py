"""Carry out a spoken command and answer the user. Callers provide the search and the erasure.

Deleting by words means everything that contains them. If that is one daily record only, it is removed, which `撤销`
undoes. Otherwise the first answer lists what would go, and `删除记忆: 火锅 确认` erases it. "Don't save this"
erases at once what was saved of the conversation.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import from_unix_ms, to_unix_ms
from sync.daily import config
from sync.daily.commands.erasure_replies import (
    RECORD_EVENT_TYPES,
    ErasurePort,
    describe_events,
    later_texts,
    not_saved_reply,
    paused_texts,
    pending_erasure_note,
)
from sync.daily.commands.fact_commands import FactCommands, FactReply, which_fact
from sync.daily.config import DailyConfig, Provider
from sync.daily.conversation import current_conversation, store
from sync.daily.conversation.command_parser import SpokenCommand, is_confirmation, parse_command, split_confirmation
from sync.daily.conversation.command_phrases import CommandKind
from sync.daily.conversation.current_conversation import ConversationEvents
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import Record
from sync.daily.pages.page_folders import EffectiveOptions
from sync.daily.record_service import ChangeResult, RecordRequest
from sync.daily.records.maintenance import match_records, names_records
from sync.daily.service import DailyService
from sync.errors import InvalidInput
from sync.log.event_types import CONVERSATION_TYPES, SESSION_MARKED, SESSION_REMOVED
from sync.log.model import Event, text_in
from sync.log.sessions import session_store

MAX_LISTED: Final = 10
_DAYS_AGO: Final = {"今天": 0, "今日": 0, "today": 0, "昨天": 1, "昨日": 1, "yesterday": 1, "前天": 2}


class CommandSearch(msgspec.Struct, frozen=True):
    """A search with the options of `config.json`."""

    query: str
    limit: int
    since: str | None
    keyword: float
    semantic: float
    decay: float
    project_path: str | None


class CommandContext(msgspec.Struct, frozen=True):
    """Where a command was given: the session with its turns, and the project.

    `points_back`: it asks to remember what was said before it, 记住这个.
    """

    session_id: str | None = None
    turns: tuple[SummaryTurn, ...] = ()
    project_path: str | None = None
    points_back: bool = False


class CommandReply(msgspec.Struct, frozen=True):
    """`done`: whether something was done or found. `message` is for the user."""

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
    """A search with the options of `config.json`. `provider`: who made the existing vectors."""
    retrieval = value.retrieval
    method = retrieval.method if value.semantic.enabled and value.semantic.provider == provider else "keyword"
    keyword, semantic = {"keyword": (1.0, 0.0), "semantic": (0.0, 1.0), "hybrid": (0.4, 0.6)}[method]
    since = date.fromisoformat(today) - timedelta(days=retrieval.search_scope_days)
    return CommandSearch(
        query, retrieval.max_results, since.isoformat(), keyword, semantic, retrieval.time_decay_rate, project_path
    )


class CommandHandler:
    """Carries out commands."""

    def __init__(
        self, daily: DailyService, search: Searcher, eraser: ErasurePort, provider: Provider, facts: FactCommands
    ) -> None:
        self._daily = daily
        self._facts = facts
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
            CommandKind.REMEMBER: self._remember,
            CommandKind.FORGET_LAST: self._forget_last,
            CommandKind.PAUSE: self._pause,
            CommandKind.FACTS: self._remember,
        }

    async def handle(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Raises InvalidInput if the command cannot be understood, StorageError."""
        reply = await self._handlers[command.kind](command, context)
        await self._daily.reconcile()
        return reply

    async def _save(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if command.argument:
            return await self._remember(command, context)
        resumed = await self._resume(context)
        session_id = context.session_id or (None if context.turns or resumed else await self._latest_session())
        request = RecordRequest(session_id, context.turns, project_path=context.project_path, is_explicit=True)
        result = await self._daily.record_service.record_conversation(request)
        if resumed and result.record is None:
            chinese = "好的，之后的内容会保存；已清除的内容不会恢复"
            english = "Saving again from here; what was erased does not come back"
            return _reply(command, True, chinese, english, ())
        known = await self._remember_before(context) if context.points_back else None
        return _with_fact(_saved_reply(command, result), known)

    async def _remember_before(self, context: CommandContext) -> FactReply | None:
        """Make a fact of what the user said before the command."""
        said = [turn.text for turn in context.turns if turn.role == "user" and parse_command(turn.text) is None][-1:]
        if not said:
            log = self._daily.events
            events = await log.database.read(current_conversation.last_said, log.device_id, context.session_id)
            said = sorted((str(event.payload.get("question", "")) for event in events), key=len)[-1:]
        return await self._facts.remember_said("".join(said), context.turns, context.session_id, context.project_path)

    async def _remember(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Make a fact of the words of a command, or list the facts that are known."""
        asked = self._facts.clean_with(context.turns, command.argument)
        lists, place = command.kind is CommandKind.FACTS, (context.session_id, context.project_path)
        done = await (self._facts.list_known() if lists else self._facts.remember(asked, *place))
        return _reply(command, done.done, done.chinese, done.english, event_id=done.fact_id)

    async def _latest_session(self) -> str:
        """This device's latest session. Raises InvalidInput if there is none."""
        device_id = self._daily.events.device_id
        session_id = await self._daily.events.database.read(store.latest_session, device_id, CONVERSATION_TYPES)
        if session_id is None:
            raise InvalidInput("nothing was said yet", field="sessionId", hint="Give the session, or its turns.")
        return session_id

    async def _resume(self, context: CommandContext) -> bool:
        """End the pause of this conversation, if there is one."""
        events = self._daily.events
        paused = await events.database.read(session_store.read_paused_sessions, events.own_device_ids)
        session_id = context.session_id
        if session_id is None and paused.unnamed_since_ms is None and not context.turns and paused.session_ids:
            session_id = await self._latest_session()
        is_paused = paused.unnamed_since_ms is not None if session_id is None else session_id in paused.session_ids
        if is_paused:
            await self._daily.record_service.set_skipped(session_id, on=False)
        return is_paused

    async def _skip(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        records, session_id = self._daily.record_service, (await self._conversation(context.session_id)).session_id
        event_id = await records.set_skipped(session_id)  # first, so that nothing more of it is recorded
        conversation = await self._conversation(session_id)
        erased = await self._erasure.erase_events(await records.event_ids_of(conversation))
        since = "" if conversation.since_ms is None else self._format_time(conversation.since_ms)
        minutes, named = self._daily.worker.open_sessions.idle_ms // 60_000, context.session_id is not None
        message = not_saved_reply(
            conversation, erased, since, was_named=named, minutes=minutes, chinese=command.is_chinese
        )
        return CommandReply(command, True, message, event_id=event_id)

    async def _pause(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Record nothing more of this conversation; what was saved stays."""
        session_id = (await self._conversation(context.session_id)).session_id
        event_id = await self._daily.record_service.set_skipped(session_id)
        texts = paused_texts(session_id, self._daily.worker.open_sessions.idle_ms // 60_000)
        return _reply(command, True, *texts, event_id=event_id)

    async def _conversation(self, session_id: str | None) -> ConversationEvents:
        """A session's conversation; without an id this device's current one, which may be empty."""
        idle_ms = self._daily.worker.open_sessions.idle_ms
        events, now_ms = self._daily.events, to_unix_ms(self._daily.clock.now())
        if session_id is not None:
            return await events.database.read(current_conversation.conversation_of_session, session_id)
        return await events.database.read(
            current_conversation.latest_conversation, events.device_id, now_ms=now_ms, idle_ms=idle_ms
        )

    async def _sensitive(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        done = await self._skip(command, context)
        marked = "已标记为敏感。" if command.is_chinese else "Marked as sensitive. "
        return replace(done, message=marked + done.message)

    def _format_time(self, unix_ms: int) -> str:
        now, then = self._daily.clock.now(), self._daily.clock.local(from_unix_ms(unix_ms))
        return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"

    async def _search_memories(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if not command.argument:
            texts = "要搜索什么？例如：搜索记忆: 火锅", "What for? As in search memory: hot pot"
            return _reply(command, False, *texts, hits=())
        value = (await self._daily.options(context.project_path)).value
        search = configured_search(command.argument, value, self._daily.today, context.project_path, self._provider)
        hits = tuple(await self._search(search))
        texts = f"找到 {len(hits)} 条记忆" if hits else "没有找到", f"{len(hits)} found" if hits else "Nothing matches"
        if not hits and (older := len(await self._search(replace(search, since=None)))):
            days = value.retrieval.search_scope_days
            texts = (
                f"最近 {days} 天没有；更早的有 {older} 条（记忆设置: retrieval.search_scope_days 决定找多远）",
                f"Nothing in the last {days} days; {older} older (retrieval.search_scope_days says how far to look)",
            )
        return _reply(command, bool(hits), *texts, hits=hits)

    async def _show(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        day = _date_of(command.argument, self._daily.today)
        text, records = await self._daily.day_page(day, None)
        texts = f"{day} 有 {len(records)} 条记忆", f"Memories of {day}: {len(records)}"
        if not records:
            texts = f"{day} 没有记忆", f"No memories of {day}"
        return _reply(command, bool(records), *texts, records, page=text)

    async def _delete(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        words, is_confirmed = split_confirmation(command.argument)
        if not words:
            texts = "要删除什么？例如：删除记忆: 火锅", "Delete what? As in delete memory: hot pot"
            return _reply(command, False, *texts)
        records = match_records((await self._daily.current_records()).visible(), words.strip('"'))
        if records and names_records(records, words):
            return await self._remove_matching(command, records)
        facts = await self._facts.find_named(words.strip('"'))
        said = [*await self._erasure.find_events(words), *await self._facts.events_of(facts)]
        events = list({event.event_id: event for event in said}.values())
        if not events and not records:
            return _reply(command, False, "没有找到这条记忆", "Nothing matches", ())
        if not is_confirmed and len(records) == 1 and all(event.type in RECORD_EVENT_TYPES for event in events):
            return await self._remove_matching(command, records)
        if is_confirmed:
            return await self._erase_matching(command, events)
        listed = describe_events(events, chinese=command.is_chinese)
        texts = (
            f"找到：{listed}。还没有删除；说“删除记忆: {words} 确认”清除",
            f'Found: {listed}. Nothing is deleted yet; "delete memory: {words} confirm" erases it',
        )
        if len(facts) > 1:
            texts = which_fact(facts[:MAX_LISTED], words)
        return _reply(command, False, *texts, records[:MAX_LISTED])

    async def _forget_last(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Erase what was said last, after a confirmation."""
        log = self._daily.events
        events = await log.database.read(current_conversation.last_said, log.device_id, context.session_id)
        if not events:
            return _reply(command, False, "刚才没有保存过什么", "Nothing was saved a moment ago")
        if command.argument:
            return await self._erase_matching(command, events)
        listed = describe_events(events[::-1], chinese=command.is_chinese)
        chinese = f"刚才保存的：{listed}。还没有删除；说“忘掉刚才的 确认”清除"
        english = f'Saved last: {listed}. Nothing is deleted yet; "forget what I just said confirm" erases it'
        return _reply(command, False, chinese, english)

    async def _remove_matching(self, command: SpokenCommand, records: Sequence[Record]) -> CommandReply:
        """Remove a daily record; if several match, list them instead."""
        if len(records) != 1:
            chinese = "有多条每日记忆匹配，请用日期和编号指明一条"
            english = "Several daily records match: name one by date and number"
            return _reply(command, False, chinese, english, records[:MAX_LISTED])
        result = await self._daily.record_service.remove(records[0].record_id)
        topic = records[0].content.topic
        chinese = f"已从每日记忆删除：{topic}（说“撤销”可恢复）"
        english = f'Deleted the daily record: {topic} ("undo" brings it back)'
        return _reply(command, True, chinese, english, records, event_id=result.event_id)

    async def _erase_matching(self, command: SpokenCommand, events: Sequence[Event]) -> CommandReply:
        """Erase these events, with all events of the same daily records; later if that can be undone until then."""
        listed = describe_events(events, chinese=command.is_chinese)
        if (due := await self._erasure.erase_later(events)) is not None:
            return _reply(command, True, *later_texts(listed, self._daily.clock.local(datetime.fromisoformat(due))), ())
        ids = {text_in(event, "record_id") or "" for event in events if event.type in RECORD_EVENT_TYPES}
        matching = ConversationEvents(None, event_ids=tuple(event.event_id for event in events))
        erased = await self._erasure.erase_events(await self._daily.record_service.event_ids_of(matching, ids))
        done = _reply(command, erased.count > 0, f"已永久清除：{listed}。", f"Erased for good: {listed}.", ())
        return replace(done, message=done.message + pending_erasure_note(erased, chinese=command.is_chinese))

    async def _undo(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        """Undo what waits to be erased, else the last removal of a daily record."""
        del context
        if await self._erasure.undo():
            return _reply(command, True, "已撤销，内容都还在", "Undone; everything is still there")
        changes = (await self._daily.current_records()).changes
        own = [event for event in changes if event.device_id == self._daily.events.device_id]
        last = next((event for event in reversed(own) if event.type in {SESSION_REMOVED, SESSION_MARKED}), None)
        if last is None:
            chinese = "没有可以撤销的删除；永久清除的内容不能恢复"
            return _reply(command, False, chinese, "No deletion to undo; what was erased cannot come back")
        result = await self._daily.record_service.undo(last.event_id)
        records = (result.record,) if result.record else ()
        topic = result.record.content.topic if result.record else ""
        return _reply(command, True, f"已撤销：{topic}", f"Undone: {topic}", records, event_id=result.event_id)

    async def _clean(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        del context
        is_confirmed = is_confirmation(command.argument)
        expired = await self._daily.expire_old_records(dry_run=not is_confirmed)
        texts = f"已清理 {len(expired)} 条过期记忆", f"{len(expired)} expired memories were put away"
        if not expired:
            texts = "没有过期的记忆", "No memories are expired"
        elif not is_confirmed:
            texts = (
                f"有 {len(expired)} 条过期记忆；说“清理旧记忆: 确认”来清理",
                f'{len(expired)} are expired; say "clean up old memories: confirm"',
            )
        return _reply(command, is_confirmed and bool(expired), *texts, expired)

    async def _settings(self, command: SpokenCommand, context: CommandContext) -> CommandReply:
        if not command.argument:
            options = await self._daily.options(context.project_path)
            return _reply(command, True, "当前记忆设置", "The settings", options=options)
        option, equals, value = command.argument.replace("＝", "=").partition("=")
        if not equals:
            raise InvalidInput("an option is set as name=value", field="text", hint="recording.auto_save=false")
        options = await self._daily.set_option(
            context.project_path, option.strip(), config.parse_value(value), for_project=False
        )
        return _reply(command, True, "设置已保存", "Saved", options=options)


def _date_of(day: str, today: str) -> str:
    """The date of a day as a command names it; today without one."""
    word = day.lower()
    if word and word not in _DAYS_AGO:
        return day
    return (date.fromisoformat(today) - timedelta(days=_DAYS_AGO.get(word, 0))).isoformat()


def _saved_reply(command: SpokenCommand, result: ChangeResult) -> CommandReply:
    if result.record is None:
        return _reply(command, False, "没有可以保存的内容", "There is nothing to save", ())
    topic = result.record.content.topic
    return _reply(command, True, f"已记住：{topic}", f"Saved: {topic}", (result.record,), event_id=result.event_id)


def _with_fact(reply: CommandReply, known: FactReply | None) -> CommandReply:
    """A reply that also says which fact was made."""
    if known is None or not known.done:
        return reply
    text = known.chinese if reply.command.is_chinese else known.english
    said = [reply.message] if reply.done and reply.message != text else []
    return replace(reply, done=True, message="\n".join([*said, text]))


def _reply(
    command: SpokenCommand, done: bool, chinese: str, english: str, records: Sequence[Record] | None = None, **more: Any
) -> CommandReply:
    """A reply in the language of the command."""
    shown = None if records is None else tuple(records)
    return CommandReply(command, done, chinese if command.is_chinese else english, shown, **more)
