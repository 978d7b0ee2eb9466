"""The block of a system prompt, and when it has to change within a session. Pure.

A changed system prompt costs the user the model's prompt cache. So a session keeps its block until something in it is
erased or withdrawn; what was replaced since is the first line of the next block before a message.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.context.block_lines import FACTS, LATE, LIKELY, BlockLine
from sync.context.budgets import LATE_CHARS, LIKELY_CHARS
from sync.context.known_facts import KnownFacts
from sync.document.read.prompt import AUTHOR_SHARE, digest_head
from sync.redaction.prompt_fence import neutralise
from sync.texts.language import ZH, Language
from sync.texts.prompts import PROMPTS
from sync.understanding.model import Fact, FactStatus

ENDS: Final = 2  # line breaks at the two ends of the content, which are no part of it


class StableBlock(msgspec.Struct, frozen=True):
    """What a session was given, and the limit under which it was chosen."""

    content: str
    max_chars: int
    lines: tuple[BlockLine, ...] = ()

    def holds(self, current: Sequence[BlockLine], facts: KnownFacts, max_chars: int) -> bool:
        """Whether nothing in it was erased or withdrawn. What replaced a fact is said before the next message."""
        texts = {line.text for line in current}
        changed = {fact.fact_id for fact in self.changed(facts)}
        return max_chars == self.max_chars and all(line.text in texts or line.fact_id in changed for line in self.lines)

    @property
    def ids(self) -> frozenset[str]:
        """The events and entries that it shows."""
        return frozenset(name for line in self.lines for name in line.ids)

    def changed(self, facts: KnownFacts) -> list[Fact]:
        """Its facts that hold no longer, or that were questioned since."""
        known = ((line, facts.by_id.get(line.fact_id)) for line in self.lines)
        return [
            fact
            for line, fact in known
            if fact is not None
            and line.part == FACTS
            and (fact.status is FactStatus.SUPERSEDED or (fact.waits and not line.is_questioned))
        ]


def compose_block(
    lines: Sequence[BlockLine], digest: str, room: int, is_vital: Callable[[str], bool]
) -> tuple[str, tuple[BlockLine, ...]]:
    """The content in at most `room` characters, and its lines.

    Safety and identity come first, what the user said here before what others wrote. One program or one device has a
    tenth of the room at most. `is_vital`: of a line that is no fact, if not all fit.
    """
    facts = [line for line in lines if line.part == FACTS]
    if sum(len(line.text) + 3 for line in facts) > room:
        facts = [replace(line, is_vital=line.is_vital or is_vital(line.text)) for line in facts]
    facts.sort(key=lambda line: (not line.is_vital, -line.weight))
    ordered = sorted(
        (*facts, *(line for line in lines if line.part != FACTS)), key=lambda line: line.author is not None
    )
    left, share = room + ENDS, int(room * AUTHOR_SHARE)
    limits = {FACTS: room, LIKELY: LIKELY_CHARS, LATE: LATE_CHARS}  # characters of the parts
    kept = sum(
        min(limits[part], sum(len(line.text) + 3 for line in lines if line.part == part)) for part in (LIKELY, LATE)
    )
    spent_by: Counter[str | int] = Counter()
    chosen: list[BlockLine] = []
    for line in ordered:
        is_new = all(line.heading != one.heading for one in chosen)
        cost = len(neutralise(line.text, "")) + 3 + (len(line.heading) + 5 if is_new else 0)
        limit = limits.get(line.part, room - kept - spent_by[FACTS])
        if cost > left or spent_by[line.part] + cost > limit:
            continue
        if line.author is not None and spent_by[line.author] + cost > share:
            continue
        chosen.append(line)
        left -= cost
        spent_by.update({line.part: cost, line.author or "": cost})
    chosen.sort(key=lambda line: line.part)
    devices = digest_head(digest, left - 1, share)[0]
    return "\n".join(part for part in (_rendered(chosen), devices) if part), tuple(chosen)


def _rendered(lines: Sequence[BlockLine]) -> str:
    """The lines under their headings."""
    by_heading: dict[str, list[str]] = {}
    for line in lines:
        by_heading.setdefault(line.heading, []).append(f"- {line.text}\n")
    parts = ((f"## {heading}\n" if heading else "") + "".join(texts) for heading, texts in by_heading.items())
    return "\n".join(parts)


def framed(content: str, fence: str, language: Language = ZH) -> str:
    """The block to put into a system prompt; empty without content. `fence`: a word that nothing stored can know."""
    memory = neutralise(content, fence).strip()
    return PROMPTS[language].system_frame.format(fence=fence, memory=memory) if memory else ""
