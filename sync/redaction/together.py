"""What the strings of a list say only as a whole: a command and its arguments, the lines of a private key."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile

from sync.redaction.model import SECRETS, Span, placeholder


def together(texts: Sequence[str], find: Callable[[str], list[Span]]) -> list[str]:
    """`texts` without what is secret in them when they are read one behind the other.

    Numbers and addresses are looked for in each by itself: in a row, two halves would make one that nobody wrote.
    """
    read = list(texts)
    for joint in _joints(texts):
        spans = [span for span in find(joint.join(read)) if span.kind in SECRETS]
        if spans:
            read = list(_without(spans, read, len(joint)))
    return read


def _joints(texts: Sequence[str]) -> Iterator[str]:
    """What would stand between the strings in a text, where that makes a difference."""
    if any("private" in text.lower() for text in texts):
        yield "\n"
    if any(_is_option(text) for text in texts):
        yield " "


def _is_option(text: str) -> bool:
    return text.startswith("-") and text.lstrip("-")[:1].isalpha()


def _without(spans: Sequence[Span], texts: Sequence[str], joint: int) -> Iterator[str]:
    """Each of the texts with the name of its kind for its part of each span; the spans are those of the whole."""
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
        begin += len(text) + joint
