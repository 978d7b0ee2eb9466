"""Write the block to put before a message: few short lines, newest first, fenced as data. Pure.

Each line names its day and its author, and can be recognised when it comes back (`echo_filter`). An answer is marked as
the model's, and its addresses and commands lose their effect.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sync.context.budgets import ITEM_CHARS
from sync.context.model import Memory
from sync.document.markdown.words import WORDS
from sync.log.authorship import label_key
from sync.recall.model import Hit, StoredItem
from sync.recall.text.echo_filter import LINE_PREFIXES
from sync.recall.text.tokenizer import tokenize
from sync.redaction.prompt_fence import neutralise
from sync.small_talk import is_small_talk
from sync.texts.language import ZH, Language
from sync.texts.prompts import PROMPTS
from sync.understanding.model import Fact, FactStatus

EXCERPT_SENTENCES: Final = 2
DOUBT_CHARS: Final = 80  # of the newer words beside a line
MIN_ITEM_CHARS: Final = 60  # of a text that is shortened to fit; less says nothing
_AUTHOR_MARK: Final = re.compile(r"【(?=\s*(?:忆|memory\b))", re.IGNORECASE)  # what names an author
_SIDE_MARK: Final = re.compile(
    r"(用户问|AI[ \t]*答|User asked|AI answered)[ \t]*[:：]"
)  # what names a side of an exchange
_NO_ANSWERS: Final = frozenset(
    {"", *(text for words in WORDS.values() for text in (words.empty_side, words.recalled_answer))}
)
_ARMED: Final = (
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*):(?=//)"), r"\1[:]"),  # an address
    (re.compile(r"(?i)\bwww\."), "www[.]"),
    (re.compile(r"`+"), "'"),  # code
    (re.compile(r"\|(?=\s*(?:sudo\s+)?\w*sh\b)"), "｜"),  # a download that is run
    (re.compile(r"\$\("), "＄("),
)
_ONLY_TAGS: Final = re.compile(r"(?:#\S+\s*)+")
_SENTENCE: Final = re.compile(r"[^\n]+?(?:[。！？!?]+|\.(?=\s|$)|$)", re.MULTILINE)


def turn_block(
    memories: Sequence[Memory],
    term_weights: Mapping[str, float],
    *,
    fence: str,
    max_chars: int,
    own_device_ids: Collection[str],
    language: Language = ZH,
    news: Sequence[str] = (),
) -> tuple[str, tuple[Hit, ...]]:
    """The block with the best memories that fit into `max_chars`, and their hits, newest first. Empty without any.

    A line that does not fit whole is shortened if enough of it remains. `news`: lines that come first.
    """
    first = [f"- {LINE_PREFIXES[language]}{' '.join(neutralise(line, fence).split())}" for line in news]
    chars_left = max_chars - len(_fenced_block(first, fence, language))
    if chars_left < 0:
        first, chars_left = [], max_chars - len(_fenced_block([], fence, language))
    chosen: list[tuple[Hit, str]] = []
    for memory in memories:
        limit = ITEM_CHARS if not chosen else ITEM_CHARS // 2
        head, text = (
            _line_head(memory, own_device_ids, language),
            _line_text(memory, term_weights, fence, limit, language),
        )
        room = chars_left - len(head) - 1
        if len(text) > room:
            text = text[: room - 1] + "…" if room > MIN_ITEM_CHARS else ""
        if text:
            chosen.append((memory.hit, head + text))
            chars_left -= len(head) + len(text) + 1
    if not chosen and not first:
        return "", ()
    chosen.sort(key=lambda pair: (-pair[0].item.ts_ms, -pair[0].item.item_id))
    return _fenced_block([*first, *(line for _, line in chosen)], fence, language), tuple(hit for hit, _ in chosen)


def excerpt(text: str, term_weights: Mapping[str, float], limit: int = ITEM_CHARS) -> str:
    """A text on one line without tags; of a longer one the consecutive sentences that match a query best."""
    parts = [match[0].strip() for match in _SENTENCE.finditer(text) if match[0].strip()]
    sentences = [sentence for sentence in parts if not _ONLY_TAGS.fullmatch(sentence)] or [text.strip()]
    whole = " ".join(" ".join(sentences).split())
    if len(whole) <= limit:
        return whole
    values = [sum(term_weights.get(term.text, 0.0) for term in tokenize(sentence)) for sentence in sentences]
    start = max(range(len(sentences)), key=lambda at: (sum(values[at : at + EXCERPT_SENTENCES]), -at))
    line = " ".join(" ".join(sentences[start : start + EXCERPT_SENTENCES]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def newer_note(newer: Fact | None, language: Language, *, is_over: bool) -> str:
    """What stands beside a text of which something has changed, or may have.

    `newer`: what has replaced or questions it; None if nothing has.
    """
    if newer is None:
        return PROMPTS[language].withdrawn if is_over else ""
    form = PROMPTS[language].newer if is_over else PROMPTS[language].questioned
    return form.format(day=newer.valid_from[:10], text=newer.statement)


def doubt_note(later: StoredItem | None, language: Language) -> str:
    """What stands beside a text after which the user said that something changed."""
    return "" if later is None else PROMPTS[language].questioned.format(day=later.date, text=later.text[:DOUBT_CHARS])


def changed_line(fact: Fact, newer: Fact | None, language: Language) -> str:
    """What a session is told of a fact in its stable block that holds no longer, or may not."""
    day, is_over = (newer or fact).valid_from[:10], fact.status is FactStatus.SUPERSEDED
    return f"{day} {PROMPTS[language].corrected}】“{fact.statement}”{newer_note(newer, language, is_over=is_over)}"


def defanged(text: str) -> str:
    """The text without addresses that can be opened, code that can be run, and images that can be fetched."""
    for pattern, harmless in _ARMED:
        text = pattern.sub(harmless, text)
    return text


def _line_head(memory: Memory, own_device_ids: Collection[str], language: Language) -> str:
    item = memory.hit.item
    word = PROMPTS[language].authors[label_key(item.written, own_device_ids)]
    elsewhere = "" if item.device_id in own_device_ids else PROMPTS[language].elsewhere
    candidate = PROMPTS[language].candidate * memory.is_candidate
    return f"- {LINE_PREFIXES[language]}{item.date} {word}{elsewhere}{candidate}】"


def _line_text(memory: Memory, term_weights: Mapping[str, float], fence: str, limit: int, language: Language) -> str:
    """The line without its head: the text, the answer to it, and what has changed since."""

    def part(text: str, room: int) -> str:
        clean = " ".join(neutralise(excerpt(text, term_weights, room), fence).split())
        return _SIDE_MARK.sub(r"「\1」", _AUTHOR_MARK.sub("［", clean))

    answer = "" if memory.answer in _NO_ANSWERS or is_small_talk(memory.answer) else defanged(memory.answer)
    text = part(memory.text, limit // 2 if answer else limit)
    if memory.is_candidate:
        text = f"“{text}”"
    if answer:
        before, between = PROMPTS[language].sides
        between = between.format(PROMPTS[language].from_tools * memory.has_tool_output)
        text = f"{before}{text}{between}{part(answer, limit - len(text))}"
    return text + " " * memory.note.startswith(" ") + part(memory.note, limit)


def _fenced_block(lines: Sequence[str], fence: str, language: Language) -> str:
    return PROMPTS[language].turn_frame.format(fence=fence, lines="\n".join(lines))
