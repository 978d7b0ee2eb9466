"""Restore the original values in an edit of a redacted text.

A program that edits the redacted copy in the cloud returns `[手机号]` in place of a number. A line that equals the
redacted form of an original line becomes that line; a line edited around its placeholders gets the values back; if the
values cannot be assigned, the original line stays and the edited one follows it. A placeholder never replaces a value.
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
    """Turn `text`, an edit of `redacted`, into an edit of `raw`; `redacted` is the redacted form of `raw`."""
    originals: defaultdict[str, deque[str]] = defaultdict(deque)  # by their redacted form
    for redacted_line, original in _redacted_lines(lines_of(raw), lines_of(redacted)):
        originals[redacted_line].append(original)
    if not originals:
        return text
    lines = lines_of(text)
    result: list[str] = []
    edited: list[int] = []
    for at, line in enumerate(lines):
        bare = line.rstrip()
        is_unchanged = bool(originals.get(bare))
        result.append(originals[bare].popleft() + line[len(bare) :] if is_unchanged else line)
        if not is_unchanged and _PLACEHOLDER.search(bare):
            edited.append(at)
    left = [(redacted_line, original) for redacted_line, several in originals.items() for original in several]
    sources = match_lines(
        [((), redacted_line) for redacted_line, _ in left], [((), lines[at].rstrip()) for at in edited]
    )
    for at, source in zip(edited, sources, strict=True):
        if source is not None:
            result[at] = _restore_line(lines[at], *left[source])
    return "".join(result)


def _restore_line(line: str, redacted: str, original: str) -> str:
    """Put the values of `original` into an edit of `redacted`; else return the original and the edit after it."""
    bare = line.rstrip()
    ending = line[len(bare) :]
    values = _redacted_values(redacted, original)
    if values is None or _PLACEHOLDER.findall(bare) != _PLACEHOLDER.findall(redacted):  # the values cannot be assigned
        return f"{original}{ending or chr(10)}{line}"
    pieces = _PLACEHOLDER.split(bare)
    return "".join(part for both in zip(pieces, [*values, ""], strict=True) for part in both) + ending


def _redacted_values(redacted: str, original: str) -> list[str] | None:
    """The values behind the placeholders of the redacted form, in order."""
    pattern = "(.+?)".join(re.escape(piece) for piece in _PLACEHOLDER.split(redacted))
    match = re.fullmatch(pattern, original)  # a value over several lines does not match
    return None if match is None else list(match.groups())


def _redacted_lines(raw: Sequence[str], redacted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Redacted lines with their originals; the original of a key block is several lines."""
    chunks = [(0, len(raw), 0, len(redacted))]
    if len(raw) != len(redacted):
        codes = SequenceMatcher(None, raw, redacted, autojunk=False).get_opcodes()
        chunks = [(low, high, at, end) for _, low, high, at, end in codes]
    for low, high, at, end in chunks:
        for step in range(at, end):
            last = high if step == end - 1 else low + (step - at) + 1
            original = "".join(raw[low + (step - at) : last]).rstrip()
            if redacted[step].rstrip() != original:
                yield redacted[step].rstrip(), original
