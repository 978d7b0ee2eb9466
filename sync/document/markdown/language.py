"""The languages of the document, and the words that the program writes in each.

A document keeps the language it began with; `LanguageChoice` decides for a new one. Texts with their own module (the
system prompt, the digest) take a `Language`.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

LanguageSetting = Literal["auto", "zh", "en"]
_NO_LOCALE: Final = frozenset({"", "c", "posix"})  # locales that name no language


class Language(StrEnum):
    ZH = "zh"
    EN = "en"


ZH: Final = Language.ZH
EN: Final = Language.EN


class Words(msgspec.Struct, frozen=True):
    """What the program writes in one language. A prefix is followed by the text."""

    title: str
    placeholder: str  # the line of an empty section
    footer_prefix: str
    question_prefix: str
    answer_prefix: str
    empty_side: str  # in place of a side without text, such as an image or a tool call
    recalled_answer: str  # in place of an answer that only repeats the memory
    code_block: str  # format: a block of code in a summary
    code_of_language: str  # the same with the name of its programming language
    day_topics: str  # format of a compacted day: day, topics
    topic_separator: str
    day_total: str  # format: its number of exchanges
    repeat_count: str  # format: how often a question or a command came


WORDS: Final[Mapping[Language, Words]] = {
    ZH: Words(
        title="AI 对话记忆",
        placeholder="- （待补充）",
        footer_prefix="**最后更新**：",
        question_prefix="- 用户问：",
        answer_prefix="- AI 答：",
        empty_side="（无文字）",
        recalled_answer="（与已有记忆相同）",
        code_block="[代码，{lines} 行]",
        code_of_language="[代码 {name}，{lines} 行]",
        day_topics="- {day}：{topics}",
        topic_separator="；",
        day_total="（{total} 次对话）",
        repeat_count="（×{count}）",
    ),
    EN: Words(
        title="AI Conversation Memory",
        placeholder="- (to be added)",
        footer_prefix="**Last updated**: ",
        question_prefix="- User asked: ",
        answer_prefix="- AI answered: ",
        empty_side="(no text)",
        recalled_answer="(same as in the memory)",
        code_block="[code, {lines} line{s}]",
        code_of_language="[code {name}, {lines} line{s}]",
        day_topics="- {day}: {topics}",
        topic_separator="; ",
        day_total=" ({total} conversations)",
        repeat_count=" (×{count})",
    ),
}


def parse_language(value: object) -> Language:
    """The language that an event names; Chinese if it names none."""
    return EN if value == EN else ZH


def language_of_locale(locale: str | None) -> Language | None:
    """``zh-CN`` and ``zh_TW.UTF-8`` are Chinese, ``C.UTF-8`` and nothing are unknown, all others get English."""
    name = (locale or "").partition(".")[0].replace("-", "_").casefold()
    if name in _NO_LOCALE:
        return None
    return ZH if name.partition("_")[0] == "zh" else EN


def environment_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """The locale of messages in the environment of a process; None if it sets none."""
    return next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), None)


class LanguageChoice(msgspec.Struct):
    """The language of what the program writes. `locale`: the app's, else that of the environment.

    `version`: the number of the newest version of the document that was noted, 0 if none was.
    """

    setting: LanguageSetting = "auto"
    locale: str | None = None
    version: int = 0
    _document_language: Language | None = None

    @property
    def current(self) -> Language:
        """The language for the document that was noted last."""
        return self.of(self._document_language)

    def note(self, version: int, language: Language | None) -> None:
        """Note the language of a version of the document."""
        self.version, self._document_language = version, language

    def of(self, document_language: Language | None) -> Language:
        """The language for a document whose own language is this; None if there is no document yet."""
        if self.setting != "auto":
            return Language(self.setting)
        return document_language or language_of_locale(self.locale) or ZH
