"""The words that the program writes into a document, in each language. A document keeps the language it began with."""

from collections.abc import Mapping
from typing import Final

import msgspec

from sync.texts.language import EN, ZH, Language


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
