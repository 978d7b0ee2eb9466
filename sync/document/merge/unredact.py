"""Puts back what was typed where a text that comes from the cloud has our placeholder for it. Pure.

The cloud's copy of a document is redacted, so a program that edits it there hands `[手机号]` back for a number.
Line by line: what is the redacted form of a line of ours is that line, wherever it stands now; in a line edited around
its placeholders the values return to their places; where that cannot be told, our line stays and the edited one comes
after it. So a placeholder never takes the place of what a person typed.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from sync.document.markdown.model import lines_of
from sync.document.merge.line_matching import match_lines
from sync.redaction import KINDS, placeholder

_PLACEHOLDER: Final = re.compile("|".join(re.escape(placeholder(kind)) for kind in KINDS))


def unredact(text: str, raw: str, redacted: str) -> str:
    """`text`, an edit of `masked`, as an edit of `raw`; `masked` is the redacted form of `raw`."""
    ours: defaultdict[str, deque[str]] = defaultdict(deque)
    for hidden, typed in _redacted_lines(lines_of(raw), lines_of(redacted)):
        ours[hidden].append(typed)
    if not ours:
        return text
    lines = lines_of(text)
    result: list[str] = []
    edited: list[int] = []
    for at, line in enumerate(lines):
        said = line.rstrip()
        known = bool(ours.get(said))
        result.append(ours[said].popleft() + line[len(said) :] if known else line)
        if not known and _PLACEHOLDER.search(said):
            edited.append(at)
    left = [(hidden, typed) for hidden, several in ours.items() for typed in several]
    found = match_lines([((), hidden) for hidden, _ in left], [((), lines[at].rstrip()) for at in edited])
    for at, source in zip(edited, found, strict=True):
        if source is not None:
            result[at] = _restore_line(lines[at], *left[source])
    return "".join(result)


def _restore_line(line: str, redacted: str, original: str) -> str:
    """An edit of `hidden` with the values of `typed` in it; else the line that was typed, and after it the edit."""
    said = line.rstrip()
    ending = line[len(said) :]
    values = _redacted_values(redacted, original)
    if values is None or _PLACEHOLDER.findall(said) != _PLACEHOLDER.findall(redacted):  # which is which is not known
        return f"{original}{ending or chr(10)}{line}"
    pieces = _PLACEHOLDER.split(said)
    return "".join(part for both in zip(pieces, [*values, ""], strict=True) for part in both) + ending


def _redacted_values(redacted: str, original: str) -> list[str] | None:
    """What stands in the line where its redacted form has placeholders, in order."""
    pattern = "(.+?)".join(re.escape(piece) for piece in _PLACEHOLDER.split(redacted))
    match = re.fullmatch(pattern, original)  # a value over several lines does not match
    return None if match is None else list(match.groups())


def _redacted_lines(raw: Sequence[str], redacted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Redacted lines with what they hide, which is several lines for a key block."""
    chunks = [(0, len(raw), 0, len(redacted))]
    if len(raw) != len(redacted):
        found = SequenceMatcher(None, raw, redacted, autojunk=False).get_opcodes()
        chunks = [(low, high, at, end) for _, low, high, at, end in found]
    for low, high, at, end in chunks:
        for step in range(at, end):
            last = high if step == end - 1 else low + (step - at) + 1
            typed = "".join(raw[low + (step - at) : last]).rstrip()
            if redacted[step].rstrip() != typed:
                yield redacted[step].rstrip(), typed
