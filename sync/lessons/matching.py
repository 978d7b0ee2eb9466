"""Decide which lesson answers a tool call: an exact error first, then the command, then a similar error.

Standard library only: a hook runs it on the profile's database when no sidecar runs.
"""

# ruff: noqa: S608 - the statements are made of names and places of ours
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync.lessons.commands import command_key, command_of
from sync.lessons.error_text import is_interrupt, keys_in_output, named_keys, normalise_message, quoted_names

MAX_HINT_BYTES: Final = 480
MIN_SIMILARITY: Final = 0.75  # share of common words of two messages
MIN_SIMILAR_WORDS: Final = 4  # fewer prove nothing
OBSERVED_CALLS: Final = 16  # calls after an error that are kept for mining: ten for its cure, six that show it held
MAX_ROWS: Final = 20
MAX_OF_KEY: Final = 200  # newest lessons of one error that are compared; one about the same names is found before

_LATIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{2,}")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]{2,}")

Execute = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]

_COLUMNS: Final = "i.lesson_id, i.kind, i.state, i.occurrences, i.content, i.project_ids"
_VISIBLE: Final = "i.removed = 0 and i.state = 'held'"
_ORDER: Final = f"order by i.helped - i.hurt desc, i.last_at desc limit {MAX_ROWS}"
_BY_KEYS: Final = f"""select {_COLUMNS} from (
  select distinct lesson_id from lesson_keys where key in (%s) order by lesson_id desc limit {MAX_OF_KEY}) k
join lesson_items i on i.lesson_id = k.lesson_id where {_VISIBLE} {_ORDER}"""
_LAST_OF_COMMAND: Final = "select error_key from lesson_calls where command_key = ? order by position desc limit 1"
_LAST_OF_SESSION: Final = "select error_key from lesson_calls where session_id = ? order by position desc limit ?"
_BY_TERMS: Final = f"""select {_COLUMNS} from (
  select lesson_id, count(*) as hits from lesson_terms where term in (%s) group by lesson_id
  having hits >= ? order by hits desc limit {MAX_ROWS}) t
join lesson_items i on i.lesson_id = t.lesson_id where {_VISIBLE}"""
_SHOWN: Final = "select 1 from lesson_shown where session_id = ? and lesson_id = ?"


@dataclass(frozen=True, slots=True)
class MatchRequest:
    """A tool call. Without `output`, `error` and `exit_code` it has not run yet."""

    tool: str = ""
    tool_input: Any = None
    output: str | None = None
    error: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    exit_code: int | None = None

    @property
    def has_run(self) -> bool:
        return self.output is not None or self.error is not None or self.exit_code is not None

    @property
    def has_failed(self) -> bool:
        """Whether it ran and failed; words in the output of a call that succeeded are no error."""
        return bool(self.exit_code) or (self.exit_code is None and bool(self.error))

    @property
    def text(self) -> str:
        return "\n".join(part for part in (self.output, self.error) if part)


@dataclass(frozen=True, slots=True)
class MatchedLesson:
    """The lesson to show, as one line of at most `MAX_HINT_BYTES`; or none. `reason` says why."""

    reason: str
    lesson_id: str | None = None
    kind: str = ""
    state: str = ""
    text: str = ""
    occurrences: int = 0


def find_match(execute: Execute, request: MatchRequest, *, exact_only: bool = False) -> MatchedLesson:
    """The lesson for a call, from the tables of the lessons."""
    if is_interrupt(request.exit_code, request.text):
        return MatchedLesson("interrupt")
    if not request.has_run:
        return _match_command(execute, request)
    keys = keys_in_output(request.error, request.output) if request.has_failed else ()
    if not keys:
        return MatchedLesson("none")
    for group in (named_keys(request.error, request.output), keys):
        rows = execute(_BY_KEYS % _places(group), group) if group else ()
        found = next((row for row in rows if fits_names(json.loads(row[4]), request.text)), None)
        if found is not None:
            return _shown_once(execute, request, "exact", found)
    if exact_only:
        return MatchedLesson("none")
    return _match_similar(execute, request)


def is_near_error(execute: Execute, request: MatchRequest) -> bool:
    """Whether a call that succeeded follows an error of its session, or repeats a command that failed when it ran last.

    Only such calls may show a cure, so only they are observed.
    """
    key = command_key(command_of(request.tool_input))
    recent = execute(_LAST_OF_SESSION, (request.session_id or "", OBSERVED_CALLS))
    last = execute(_LAST_OF_COMMAND, (key,)) if key else ()
    return any(row[0] is not None for row in (*recent, *last))


def _match_command(execute: Execute, request: MatchRequest) -> MatchedLesson:
    """A command that failed when it ran last, and whose error has a cure."""
    key = command_key(command_of(request.tool_input))
    last = execute(_LAST_OF_COMMAND, (key,)) if key else ()
    if not last or last[0][0] is None:
        return MatchedLesson("none")
    rows = execute(_BY_KEYS % "?", (last[0][0],))
    return _shown_once(execute, request, "command", rows[0]) if rows else MatchedLesson("none")


def _match_similar(execute: Execute, request: MatchRequest) -> MatchedLesson:
    words = terms_of(request.error or request.output or "")
    if len(words) < MIN_SIMILAR_WORDS:
        return MatchedLesson("none")
    least = max(MIN_SIMILAR_WORDS, int(len(words) * MIN_SIMILARITY))
    for row in execute(_BY_TERMS % _places(words), (*words, least)):
        content, projects = json.loads(row[4]), json.loads(row[5])
        theirs = set(terms_of(_message_of(content)))
        is_near = len(theirs & set(words)) >= MIN_SIMILARITY * len(theirs | set(words))
        is_here = len(projects) != 1 or request.project_id in {None, *projects} or projects == ["proj_global"]
        if is_near and is_here and fits_names(content, request.text):
            return _shown_once(execute, request, "similar", row)
    return MatchedLesson("none")


def _shown_once(execute: Execute, request: MatchRequest, reason: str, row: Sequence[Any]) -> MatchedLesson:
    lesson_id, kind, state, occurrences, content = row[:5]
    if request.session_id and execute(_SHOWN, (request.session_id, lesson_id)):
        return MatchedLesson("shown")
    text = hint_text(str(lesson_id), json.loads(content), int(occurrences))
    return MatchedLesson(reason, lesson_id, kind, state, text, occurrences) if text else MatchedLesson("none")


def terms_of(message: str) -> tuple[str, ...]:
    """The words by which a similar message is found: Latin words from three letters, pairs of Chinese characters."""
    words: dict[str, None] = {}
    for word in normalise_message(message).split():
        if word.isascii():
            words |= {word: None} if len(word) > 2 else {}
        else:
            words |= {word[start : start + 2]: None for start in range(max(1, len(word) - 1))}
    return tuple(words)[:40]


def hint_text(lesson_id: str, content: Mapping[str, Any], occurrences: int) -> str:
    """One line with the cure itself; empty if the lesson has none. It states what happened and gives no order."""
    cure = _one_line("; ".join(dict.fromkeys(part for part in texts_of_cure(content) if part.strip())))
    if not cure:
        return ""
    error = content.get("error")
    kind = error.get("type") if isinstance(error, Mapping) else ""
    name = _cut(": ".join(part for part in (str(kind or ""), _one_line(_message_of(content))) if part), 140)
    solved = "，解决：" if _has_han(cure) else "; solved by: "
    return counted_line(lesson_id, f"{name}{solved}{cure}", occurrences)


def texts_of_cure(content: Mapping[str, Any]) -> list[str]:
    """The description of a lesson's solution, and its actions."""
    solution = content.get("solution")
    if not isinstance(solution, Mapping):
        return []
    actions = solution.get("actions")
    parts = [solution.get("description"), *(actions if isinstance(actions, list) else ())]
    return [part for part in parts if isinstance(part, str)]


def counted_line(lesson_id: str, words: str, occurrences: int) -> str:
    """One line of at most `MAX_HINT_BYTES` with the id, how often the lesson was seen, and a text."""
    line = _one_line(words)
    times = "time" if occurrences == 1 else "times"
    seen = f"（发生 {occurrences} 次）" if _has_han(line) else f" (seen {occurrences} {times}) "
    return _cut(f"{lesson_id}{seen}{line}", MAX_HINT_BYTES)


def cure_of(content: Mapping[str, Any]) -> str:
    """All text of a lesson's solution."""
    return json.dumps(content.get("solution") or {}, ensure_ascii=False)


def fits_names(content: Mapping[str, Any], text: str) -> bool:
    """Whether the cure is about the names in this text: `pip install a` does not cure a missing module `b`.

    A name is a word that the error and its cure share; the key of an error has no quoted names and no paths.
    """
    message, cure, folded = _message_of(content).casefold(), cure_of(content).casefold(), text.casefold()
    shared = {name for name in quoted_names(message) if name in cure} | (words_of(message) & words_of(cure))
    return all(name in folded for name in shared)


def words_of(text: str) -> set[str]:
    """Latin words from three letters, and pairs of Chinese characters."""
    runs = _HAN.findall(text)
    return {*_LATIN.findall(text), *(run[start : start + 2] for run in runs for start in range(len(run) - 1))}


def _message_of(content: Mapping[str, Any]) -> str:
    error = content.get("error")
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else ""


def _has_han(text: str) -> bool:
    return any("\u4e00" <= char <= "\u9fff" for char in text)


def _one_line(text: str) -> str:
    return " ".join(
        "".join(char if char.isprintable() else " " for char in text).replace("<", "‹").replace(">", "›").split()
    )


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, with … if something was cut."""
    data = text.encode(errors="replace")
    return text if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "…"


def _places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
