"""A command carried out, and what the person is told. Which words are a command is decided in `command.py`.

Searching is somebody else's craft: who asks hands in how (`Searcher`), with the options of the place that is asked.
Deleting takes away one record; where the words mean several, they are shown and nothing is done.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from sync.errors import InvalidInput
from sync.memory.daily import config
from sync.memory.daily.command import Command, Kind, confirms
from sync.memory.daily.config import Config, Provider
from sync.memory.daily.deeds import Conversation
from sync.memory.daily.model import Record, content
from sync.memory.daily.places import Options
from sync.memory.daily.room import Daily
from sync.memory.daily.summarise import Turn
from sync.memory.daily.tidying import meant

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

    def __init__(self, room: Daily, search: Searcher, provider: Provider) -> None:
        self._room = room
        self._search = search
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
        }

    async def carry_out(self, command: Command, here: Here) -> Reply:
        """Raises InvalidInput where the command cannot be understood, StorageError."""
        reply = await self._deeds[command.kind](command, here)
        await self._room.settle()
        return reply

    async def _save(self, command: Command, here: Here) -> Reply:
        if command.about:
            done = await self._room.deeds.add(None, None, content(command.about), here.project_path, ())
        else:
            session_id = here.session_id or (None if here.turns else await self._room.newest_session())
            if session_id is not None and session_id in (await self._room.book()).skipped:
                await self._room.deeds.skip(session_id, on=False)
            given = Conversation(session_id, here.turns, project_path=here.project_path, forced=True)
            done = await self._room.deeds.keep(given)
        kept = (done.record,) if done.record else ()
        topic = done.record.content.topic if done.record else ""
        message = _said(command, f"已记住：{topic}", f"Saved: {topic}")
        if not kept:
            message = _said(command, "没有可以保存的内容", "There is nothing to save")
        return Reply(command, bool(kept), message, kept, event_id=done.event_id)

    async def _skip(self, command: Command, here: Here) -> Reply:
        session_id = here.session_id or await self._room.newest_session()
        event_id = await self._room.deeds.skip(session_id)
        for record in (await self._room.book()).of_session(session_id):  # it was asked for before, or fell silent
            await self._room.deeds.remove(record.record_id, reason="skip")
        message = _said(command, "好的，本次对话不保存", "This conversation will not be saved")
        return Reply(command, True, message, event_id=event_id)

    async def _sensitive(self, command: Command, here: Here) -> Reply:
        session_id = here.session_id or await self._room.newest_session()
        await self._room.deeds.forget_session(session_id)
        message = _said(command, "已标记为敏感：本次对话不保留", "Marked as sensitive: nothing of it is kept")
        return Reply(command, True, message)

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
        if not command.about:
            raise InvalidInput("a deletion names what goes", field="text", hint="删除记忆: 2026-01-29 #1")
        found = meant((await self._room.book()).shown(), command.about)
        if len(found) != 1:
            several = "有多条匹配，请说得更具体", "Several match"
            told = several if found else ("没有找到这条记忆", "Nothing matches")
            return Reply(command, False, _said(command, *told), tuple(found[:SHOWN]))
        done = await self._room.deeds.remove(found[0].record_id)
        topic = found[0].content.topic
        message = _said(command, f"已删除：{topic}（可撤销）", f"Deleted: {topic} (can be undone)")
        return Reply(command, True, message, (found[0],), event_id=done.event_id)

    async def _clean(self, command: Command, here: Here) -> Reply:
        del here
        sure = confirms(command.about)
        found = await self._room.clean(dry_run=not sure)
        told = f"已清理 {len(found)} 条过期记忆", f"{len(found)} expired memories were put away"
        if not sure:
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


def _said(command: Command, chinese: str, english: str) -> str:
    return chinese if command.chinese else english
