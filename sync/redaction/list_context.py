"""Redact secrets that only the strings of a list together show: a command with its arguments, a key line by line."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile

from sync.redaction.model import SecretSpan, placeholder


def redact_joined(texts: Sequence[str], find_spans: Callable[[str], list[SecretSpan]]) -> list[str]:
    """Redact what `find_spans` finds when `texts` are joined.

    It finds secrets only: two numbers side by side would make one that is not in the data.
    """
    read = list(texts)
    for joint in _separators(texts):
        spans = find_spans(joint.join(read))
        if spans:
            read = list(_replace_spans(spans, read, len(joint)))
    return read


def _separators(texts: Sequence[str]) -> Iterator[str]:
    """The separators to join with, of those that can make a difference."""
    if any("private" in text.lower() for text in texts):
        yield "\n"
    if any(_is_option(text) for text in texts):
        yield " "


def _is_option(text: str) -> bool:
    return text.startswith("-") and text.lstrip("-")[:1].isalpha()


def _replace_spans(spans: Sequence[SecretSpan], texts: Sequence[str], separator_length: int) -> Iterator[str]:
    """Replace in each text its part of each span of the joined text."""
    begin = first = 0
    for text in texts:
        pieces: list[str] = []
        done = 0
        while first < len(spans) and spans[first].end <= begin:
            first += 1
        for span in takewhile(lambda span: span.start < begin + len(text), islice(spans, first, None)):  # noqa: B023 - used at once
            start, end = max(span.start - begin, 0), span.end - begin
            if text[start:end].strip():
                pieces += (text[done:start], placeholder(span.kind))
                done = min(end, len(text))
        yield "".join((*pieces, text[done:]))
        begin += len(text) + separator_length
