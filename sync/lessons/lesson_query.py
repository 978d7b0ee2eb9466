"""Which lessons a search finds, in which order, and which are equal. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sync.lessons.matching import words_of
from sync.lessons.model import Lesson, content_key

TITLE_WEIGHT: Final = 3  # of a word in the title or a tag
CURE_WEIGHT: Final = 2  # of a word in the solution, or when to use a pattern
MIN_SHARE: Final = 0.5  # of the words, if no lesson has all of them


@dataclass(frozen=True, slots=True)
class LessonQuery:
    """`fields`: values of the record; None is any. A cure that is held back is found by its state only."""

    words: str = ""
    kind: str | None = None
    tag: str | None = None
    state: str | None = None
    fields: Mapping[str, str | None] = field(default_factory=dict)


def select_lessons(lessons: Sequence[Lesson], wanted: LessonQuery) -> list[Lesson]:
    """The lessons that have all words, the best match first; without such a lesson, those with half of them.

    Without words, the newest first. In Chinese text half is counted in pairs of characters.
    """
    found = sorted(
        (lesson for lesson in lessons if _is_selected(lesson, wanted)),
        key=lambda lesson: (lesson.last_at, lesson.lesson_id),
        reverse=True,
    )
    words = wanted.words.casefold().split()
    if not words:
        return found
    scored = [(_score(lesson, words), lesson) for lesson in found if all(word in _text_of(lesson) for word in words)]
    if not scored:
        parts = words_of(wanted.words.casefold())
        shares = [(sum(part in _text_of(lesson) for part in parts) / len(parts), lesson) for lesson in found if parts]
        scored = [(share, lesson) for share, lesson in shares if share >= MIN_SHARE]
    return [lesson for _, lesson in sorted(scored, key=lambda pair: -pair[0])]  # stable: of equals the newest first


def find_duplicates(lessons: Sequence[Lesson]) -> tuple[list[Lesson], dict[str, list[Lesson]]]:
    """The lessons that repeat others, and the same by the id of the one that stays: one that was said, or is held."""
    chosen: list[Lesson] = []
    merges: dict[str, list[Lesson]] = {}
    kept: dict[tuple[str, str], Lesson] = {}
    for lesson in sorted(lessons, key=lambda one: (one.source != "said", one.state != "held")):
        first = kept.setdefault((lesson.kind, content_key(lesson.content)), lesson)
        if first is not lesson:
            chosen.append(lesson)
            merges.setdefault(first.lesson_id, []).append(lesson)
    return chosen, merges


def _is_selected(lesson: Lesson, wanted: LessonQuery) -> bool:
    if lesson.state == "held_back" and wanted.state != "held_back":
        return False
    has = {**{name: lesson.content.get(name) for name in wanted.fields}, "kind": lesson.kind, "state": lesson.state}
    asked = {**wanted.fields, "kind": wanted.kind, "state": wanted.state}
    if any(value is not None and value.casefold() != str(has[name]).casefold() for name, value in asked.items()):
        return False
    return wanted.tag is None or wanted.tag.casefold() in {tag.casefold() for tag in lesson.tags}


def _score(lesson: Lesson, words: Sequence[str]) -> float:
    head = " ".join((lesson.lesson_id, lesson.title, *lesson.tags)).casefold()
    cure = _as_text([lesson.content.get(name) for name in ("solution", "when_to_use", "description")])
    return sum(TITLE_WEIGHT if word in head else CURE_WEIGHT if word in cure else 1 for word in words)


def _text_of(lesson: Lesson) -> str:
    return f"{lesson.lesson_id} {_as_text(lesson.content)}".casefold()


def _as_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).casefold()
