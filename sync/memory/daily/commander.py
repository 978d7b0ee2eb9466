"""A command carried out, and what the person is told. Which words are a command is decided in `command.py`.

The caller hands in how to search (`Searcher`) and how to erase (`Eraser`).

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

from sync.clock import milliseconds, moment
from sync.errors import InvalidInput
from sync.log import session_store
from sync.log.model import Event
from sync.memory.daily import config, current
from sync.memory.daily.command import Command, Kind, confirms, without_confirmation
from sync.memory.daily.config import Config, Provider
from sync.memory.daily.current import Talk
from sync.memory.daily.deeds import Conversation, Outcome
from sync.memory.daily.erasure import RECORDS, Eraser, left, listing, not_saved
from sync.memory.daily.model import MARKED, REMOVED, Record, content
from sync.memory.daily.places import Options
from sync.memory.daily.room import Daily
from sync.memory.daily.summarise import Turn
from sync.memory.daily.tidying import meant, names_records

SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search as `config.json` has it: at most so many, not older than a day or however old, with these weights."""

    query: str
    limit: int
    since: str | None
    keyword: float
    semantic: float
    decay: float
    project_path: str | None


@dataclass(frozen=True, slots=True)
class Here:
    """Where a command was given: the session, what was said in it, the project."""

    session_id: str | None = None
    turns: tuple[Turn, ...] = ()
    project_path: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """`done`: whether something was done or found; `message` is for the person."""

    command: Command
    done: bool
    message: str
    records: tuple[Record, ...] | None = None
    hits: tuple[Any, ...] | None = None
    page: str | None = None
    options: Options | None = None
    event_id: str | None = None


Searcher = Callable[[Wanted], Awaitable[Sequence[Any]]]


def wanted(query: str, value: Config, today: str, project_path: str | None, provider: Provider) -> Wanted:
    """A search by the options of `config.json` (seed 000 §5 and §8), where `provider` makes the vectors there are."""
    retrieval = value.retrieval
    method = retrieval.method if value.semantic.enabled and value.semantic.provider == provider else "keyword"
    keyword, semantic = {"keyword": (1.0, 0.0), "semantic": (0.0, 1.0), "hybrid": (0.4, 0.6)}[method]
    since = date.fromisoformat(today) - timedelta(days=retrieval.search_scope_days)
    return Wanted(
        query, retrieval.max_results, since.isoformat(), keyword, semantic, retrieval.time_decay_rate, project_path
    )


class Commander:
    """Carries out one command after the other."""

    def __init__(self, room: Daily, search: Searcher, eraser: Eraser, provider: Provider) -> None:
        self._room = room
        self._search = search
        self._eraser = eraser
        self._provider = provider
        self._deeds: dict[Kind, Callable[[Command, Here], Awaitable[Reply]]] = {
            Kind.SAVE: self._save,
            Kind.SKIP: self._skip,
            Kind.SENSITIVE: self._sensitive,
            Kind.SEARCH: self._find,
            Kind.SHOW: self._show,
            Kind.DELETE: self._delete,
            Kind.CLEAN: self._clean,
            Kind.SETTINGS: self._settings,
            Kind.UNDO: self._undo,
        }

    async def carry_out(self, command: Command, here: Here) -> Reply:
        """Raises InvalidInput where the command cannot be understood, StorageError."""
        reply = await self._deeds[command.kind](command, here)
        await self._room.settle()
        return reply

    async def _save(self, command: Command, here: Here) -> Reply:
        if command.about:
            done = await self._room.deeds.add(None, None, content(command.about), here.project_path, ())
            return _kept(command, done)
        resumed = await self._resume(here)
        session_id = here.session_id or (None if here.turns or resumed else await self._room.newest_session())
        given = Conversation(session_id, here.turns, project_path=here.project_path, forced=True)
        done = await self._room.deeds.keep(given)
        if resumed and done.record is None:
            told = (
                "好的，之后的内容会保存；已清除的内容不会恢复",
                "Saving again from here; what was erased does not come back",
            )
            return Reply(command, True, _said(command, *told), ())
        return _kept(command, done)

    async def _resume(self, here: Here) -> bool:
        """End the pause of this conversation, if there is one."""
        events = self._room.events
        paused = await events.database.read(lambda connection: session_store.pauses(connection, events.device_id))
        session_id = here.session_id
        if session_id is None and paused.unnamed_ms is None and not here.turns and paused.sessions:
            session_id = await self._room.newest_session()
        on = paused.unnamed_ms is not None if session_id is None else session_id in paused.sessions
        if on:
            await self._room.deeds.skip(session_id, on=False)
        return on

    async def _skip(self, command: Command, here: Here) -> Reply:
        talk = await self._talk(here.session_id)
        event_id = await self._room.deeds.skip(talk.session_id)  # first: from now on nothing more of it is recorded
        talk = await self._talk(talk.session_id)
        erased = await self._eraser.erase(await self._room.deeds.everything_of(talk))
        since = "" if talk.since_ms is None else self._time(talk.since_ms)
        minutes, named = self._room.keeper.idle_ms // 60_000, here.session_id is not None
        message = not_saved(talk, erased, since, was_named=named, minutes=minutes, chinese=command.chinese)
        return Reply(command, True, message, event_id=event_id)

    async def _talk(self, session_id: str | None) -> Talk:
        """A session; without an id the conversation that is going on on this device, or an empty one."""
        events, now_ms, idle_ms = self._room.events, milliseconds(self._room.clock.now()), self._room.keeper.idle_ms
        if session_id is not None:
            return await events.database.read(lambda connection: current.named(connection, session_id))
        return await events.database.read(
            lambda connection: current.newest(connection, events.device_id, now_ms=now_ms, idle_ms=idle_ms)
        )

    async def _sensitive(self, command: Command, here: Here) -> Reply:
        done = await self._skip(command, here)
        return replace(done, message=_said(command, "已标记为敏感。", "Marked as sensitive. ") + done.message)

    def _time(self, unix_ms: int) -> str:
        now, then = self._room.clock.now(), self._room.clock.local(moment(unix_ms))
        return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"

    async def _find(self, command: Command, here: Here) -> Reply:
        if not command.about:
            message = _said(command, "要搜索什么？例如：搜索记忆: 火锅", "What for? As in search memory: hot pot")
            return Reply(command, False, message, hits=())
        value = (await self._room.options(here.project_path)).value
        asked = wanted(command.about, value, self._room.today, here.project_path, self._provider)
        hits = tuple(await self._search(asked))
        told = f"找到 {len(hits)} 条记忆", f"{len(hits)} found"
        if not hits and (older := len(await self._search(replace(asked, since=None)))):
            days = value.retrieval.search_scope_days
            told = (
                f"最近 {days} 天没有；更早的有 {older} 条（记忆设置: retrieval.search_scope_days 决定找多远）",
                f"Nothing in the last {days} days; {older} older (retrieval.search_scope_days says how far to look)",
            )
        return Reply(command, bool(hits), _said(command, *told), hits=hits)

    async def _show(self, command: Command, here: Here) -> Reply:
        del here
        day = command.about or self._room.today
        text, records = await self._room.page(day, None)
        message = _said(command, f"{day} 有 {len(records)} 条记忆", f"{len(records)} of {day}")
        return Reply(command, bool(records), message, tuple(records), page=text)

    async def _delete(self, command: Command, here: Here) -> Reply:
        del here
        words, sure = without_confirmation(command.about)
        if not words:
            asks = "要删除什么？例如：删除记忆: 火锅", "Delete what? As in delete memory: hot pot"
            return Reply(command, False, _said(command, *asks))
        records = meant((await self._room.book()).shown(), words)
        if records and names_records(records, words):
            return await self._removed(command, records)
        found = await self._eraser.find(words)
        if not found and not records:
            return Reply(command, False, _said(command, "没有找到这条记忆", "Nothing matches"), ())
        if not sure and len(records) == 1 and all(event.type in RECORDS for event in found):
            return await self._removed(command, records)
        if sure:
            return await self._erased(command, found)
        listed = listing(found, chinese=command.chinese)
        told = (
            f"找到：{listed}。还没有删除；说“删除记忆: {words} 确认”永久清除（不能撤销）",
            f'Found: {listed}. Nothing is deleted yet; "delete memory: {words} confirm" erases it for good',
        )
        return Reply(command, False, _said(command, *told), tuple(records[:SHOWN]))

    async def _removed(self, command: Command, records: Sequence[Record]) -> Reply:
        """Remove the one daily record that is meant; show several."""
        if len(records) != 1:
            several = (
                "有多条每日记忆匹配，请用日期和编号指明一条",
                "Several daily records match: name one by date and number",
            )
            return Reply(command, False, _said(command, *several), tuple(records[:SHOWN]))
        done = await self._room.deeds.remove(records[0].record_id)
        topic = records[0].content.topic
        told = (
            f"已从每日记忆删除：{topic}（说“撤销”可恢复）",
            f'Deleted the daily record: {topic} ("undo" brings it back)',
        )
        return Reply(command, True, _said(command, *told), tuple(records), event_id=done.event_id)

    async def _erased(self, command: Command, found: Sequence[Event]) -> Reply:
        """Erase these events for good, and everything else that was said of the same daily records."""
        named = [event.payload.get("record_id") for event in found if event.type in RECORDS]
        ids = {record_id for record_id in named if isinstance(record_id, str)}
        these = Talk(None, event_ids=tuple(event.event_id for event in found))
        erased = await self._eraser.erase(await self._room.deeds.everything_of(these, ids))
        listed = listing(found, chinese=command.chinese)
        told = f"已永久清除：{listed}。", f"Erased for good: {listed}."
        return Reply(command, erased.count > 0, _said(command, *told) + left(erased, chinese=command.chinese), ())

    async def _undo(self, command: Command, here: Here) -> Reply:
        """Take back the last deletion of a daily record; an erasure cannot be taken back."""
        del here
        own = [event for event in (await self._room.book()).deeds if event.device_id == self._room.events.device_id]
        last = next((event for event in reversed(own) if event.type in {REMOVED, MARKED}), None)
        if last is None:
            told = "没有可以撤销的删除；永久清除的内容不能恢复", "No deletion to undo; what was erased cannot come back"
            return Reply(command, False, _said(command, *told))
        done = await self._room.deeds.undo(last.event_id)
        topic = done.record.content.topic if done.record else ""
        told = f"已撤销：{topic}", f"Undone: {topic}"
        return Reply(
            command, True, _said(command, *told), (done.record,) if done.record else (), event_id=done.event_id
        )

    async def _clean(self, command: Command, here: Here) -> Reply:
        del here
        sure = confirms(command.about)
        found = await self._room.clean(dry_run=not sure)
        told = f"已清理 {len(found)} 条过期记忆", f"{len(found)} expired memories were put away"
        if not found:
            told = "没有过期的记忆", "No memories are expired"
        elif not sure:
            told = (
                f"有 {len(found)} 条过期记忆；说“清理旧记忆: 确认”来清理",
                f'{len(found)} are expired; say "clean up old memories: confirm"',
            )
        return Reply(command, sure and bool(found), _said(command, *told), tuple(found))

    async def _settings(self, command: Command, here: Here) -> Reply:
        if not command.about:
            options = await self._room.options(here.project_path)
            return Reply(command, True, _said(command, "当前记忆设置", "The settings"), options=options)
        option, equals, value = command.about.replace("＝", "=").partition("=")
        if not equals:
            raise InvalidInput("an option is set as name=value", field="text", hint="recording.auto_save=false")
        options = await self._room.set_option(
            here.project_path, option.strip(), config.value_of(value), for_project=False
        )
        return Reply(command, True, _said(command, "设置已保存", "Saved"), options=options)


def _kept(command: Command, done: Outcome) -> Reply:
    if done.record is None:
        return Reply(command, False, _said(command, "没有可以保存的内容", "There is nothing to save"), ())
    topic = done.record.content.topic
    message = _said(command, f"已记住：{topic}", f"Saved: {topic}")
    return Reply(command, True, message, (done.record,), event_id=done.event_id)


def _said(command: Command, chinese: str, english: str) -> str:
    return chinese if command.chinese else english
