"""Spoken commands about facts: remember what follows, list what is known, find the facts that the user means."""

from collections.abc import Sequence
from typing import Final

import msgspec

from sync.daily.commands.named_facts import named_facts
from sync.daily.conversation.command_parser import SpokenCommand
from sync.daily.conversation.command_phrases import CommandKind
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.log.model import Event
from sync.redaction import KINDS, Redactor, placeholder
from sync.understanding.model import MAX_REMEMBERED, REMEMBER, USER_SUBJECT, Fact, FactStatus
from sync.understanding.reading.introductions import asks
from sync.understanding.reading.reader import extract_statements, remembered
from sync.understanding.reading.segments import read_sentences
from sync.understanding.service import FactService

MAX_SHOWN: Final = 50  # facts in one answer


class FactReply(msgspec.Struct, frozen=True):
    """What a command did, in both languages. `fact_id`: the fact that it made."""

    done: bool
    chinese: str
    english: str
    fact_id: str | None = None


def read_wish(message: str) -> SpokenCommand | None:
    """The wish to remember its words that a message is; None if it also says or asks something else."""
    sentences = read_sentences(message)
    wishes = [one.text for one in extract_statements(message) if one.reader == REMEMBER]
    flat = " ".join(message.split())
    at = flat.find(wishes[0]) if wishes else -1
    if at < 0 or at > len(sentences[0].text) or asks(wishes[-1]):
        return None
    if any(one.foreign is not None for one in sentences) or any(one.is_question for one in sentences[1:]):
        return None
    words = "\n".join(wishes) if at == 0 or len(wishes) == len(sentences) else flat[at:]
    return SpokenCommand(CommandKind.REMEMBER, words, any("\u4e00" <= char <= "\u9fff" for char in message))


class FactCommands:
    """Carries out the commands about the facts of one profile."""

    def __init__(self, facts: FactService, redactor: Redactor) -> None:
        self._facts = facts
        self._redactor = redactor

    async def remember(self, words: str, session_id: str | None, project_path: str | None) -> FactReply:
        """Make a fact of each line."""
        clean = self._redactor.clean(words)
        if any(placeholder(kind) in clean for kind in KINDS):
            chinese = f"没有记住，里面有不能保存的内容：{clean}"
            return FactReply(False, chinese, f"Not remembered, for it has what is never stored: {clean}")
        statements = [one for line in clean.splitlines() if (one := remembered(line)) is not None]
        facts = [await self._facts.remember(one, session_id, project_path) for one in statements]
        if not facts:
            english = "Remember what? As in remember that my locker is 12"
            return FactReply(False, "要记住什么？例如：记住我的柜子是12号", english)
        shown, zh, en = [one.statement for one in facts], "", ""
        if any(len(line) > MAX_REMEMBERED for line in clean.splitlines()):
            zh, en = "（太长，只记前 500 个字符）", " (too long: only the first 500 characters)"
        if any(one.status is not FactStatus.ACTIVE for one in facts):
            zh, en = f"{zh}（等你确认后生效）", f"{en} (it waits for your review)"
        return FactReply(
            True, f"已记住：{'；'.join(shown)}{zh}", f"Remembered: {'; '.join(shown)}{en}", facts[-1].fact_id
        )

    def clean_with(self, turns: Sequence[SummaryTurn], words: str) -> str:
        """Clean words beside the turns of their call: a value that is replaced in one goes from all."""
        given = [(turn.role == "assistant", turn.text) for turn in turns]
        return self._redactor.clean_turns([*given, (False, words)])[-1]

    async def remember_said(
        self, said: str, turns: Sequence[SummaryTurn], session_id: str | None, project_path: str | None
    ) -> FactReply | None:
        """Make a fact of what the user said in these turns; None if that only asks, or is another's words."""
        said = self.clean_with(turns, said)
        if not any(one.foreign is None and not one.is_question for one in read_sentences(said)):
            return None
        return await self.remember(" ".join(said.split()), session_id, project_path)

    async def list_known(self) -> FactReply:
        """What is known about the user, what matters most first."""
        facts = await self._facts.current()
        known = [fact for fact in facts.active if fact.subject == USER_SUBJECT]
        known.sort(key=lambda fact: (fact.importance or 0.0, fact.valid_from), reverse=True)
        waiting = len(facts.candidates)
        zh, en = (f"另有 {waiting} 条等你确认。", f" {waiting} more wait for your review.") if waiting else ("", "")
        if not known:
            return FactReply(bool(waiting), f"还没有记住关于你的事。{zh}", f"Nothing is remembered about you yet.{en}")
        lines = "\n".join(describe_fact(fact) for fact in known[:MAX_SHOWN])
        if left := len(known[MAX_SHOWN:]):
            zh, en = f"还有 {left} 条没有列出。{zh}", f" {left} more are not listed.{en}"
        head = f"记得你 {len(known)} 件事。{zh}", f"Remembered about you: {len(known)}.{en}"
        return FactReply(True, f"{head[0]}\n{lines}", f"{head[1]}\n{lines}")

    async def find_named(self, words: str) -> list[Fact]:
        """The facts, also candidates, that a few words mean."""
        facts = await self._facts.current()
        return named_facts(words, [*facts.active, *facts.candidates])

    async def events_of(self, facts: list[Fact]) -> list[Event]:
        """The events of facts and the exchanges in which they were stated."""
        return await self._facts.events_of(facts)


def which_fact(facts: Sequence[Fact], words: str) -> tuple[str, str]:
    """The question which of several facts to forget, in both languages."""
    lines = "\n".join(map(describe_fact, facts))
    zh, en = (
        f"说“删除记忆: {words} 确认”全部清除",
        f'"delete memory: {words} confirm" erases all of them',
    )
    return (
        f"有几条符合，还没有删除。说出是哪一条；{zh}。\n{lines}",
        f"Several match; none is deleted yet. Say which one; {en}.\n{lines}",
    )


def describe_fact(fact: Fact) -> str:
    """A fact on a line with the month in which it was stated."""
    return f"- {fact.statement} ({fact.valid_from[:7]})"
