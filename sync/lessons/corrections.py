"""Corrections by the user as lessons: what feedback says of which lesson. Pure.

Feedback with the same words is one lesson, whatever the project; insights call it an instinct of kind `correct`.
"""

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from sync.log.authorship import author_of
from sync.log.model import Event, Origin

MAX_TEXT_CHARS: Final = 300
UNTRUSTED_ORIGINS: Final = frozenset({Origin.MODEL, Origin.PEER})  # no words of the user of this device


@dataclass(frozen=True, slots=True)
class Feedback:
    """What one event says. `instinct_id`: of which correction. `text` is empty for a verdict on a known one."""

    instinct_id: str
    effect: Literal["correct", "helped", "hurt"]
    text: str = ""


def read_feedback(event: Event) -> Feedback | None:
    """What a `user_feedback` event says of a correction; None if nothing, or if it may not.

    A program or a file proposes corrections; only the user judges one.
    """
    verdict, target, content = (event.payload.get(name) for name in ("feedback_type", "instinct_id", "content"))
    if event.origin in UNTRUSTED_ORIGINS or verdict not in ("correction", "rejection", "approval"):
        return None
    is_approval = verdict == "approval"
    if (is_approval or target) and not author_of(event).is_users:
        return None
    if isinstance(target, str) and target:
        return Feedback(target, "helped" if is_approval else "hurt")
    text = " ".join(content.split()) if isinstance(content, str) else ""
    if not normalise_text(text):
        return None
    named = instinct_id(f"correct:{normalise_text(text)}")
    return Feedback(named, "hurt") if is_approval else Feedback(named, "correct", text[:MAX_TEXT_CHARS])


def correction_id(day: str, named: str) -> str:
    """The id of the lesson: it stays when the tables are built again. `day`: of the first event, as YYYY-MM-DD."""
    return f"pat-{day.replace('-', '')}-c{named.removeprefix('ins_')[:6]}"


def normalise_text(text: str) -> str:
    """Fold width and case, and drop spaces and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def instinct_id(key: str) -> str:
    """The stable id of an instinct. `key`: its kind and its normalised text."""
    return f"ins_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
