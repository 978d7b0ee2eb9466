"""Features of one event: its stage, its outcome, its topics. Pure.

Other programs write the payloads, so every field may have any type.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sync.chinese_words import content_words
from sync.log.event_types import EXCHANGE_RECORDED, MEMORY_FACT, MESSAGE, TOOL_CALL, USER_FEEDBACK
from sync.log.model import Event

MAX_STAGE_CHARS: Final = 32
MAX_ACTION_CHARS: Final = 60

_EDIT_TOOLS: Final = frozenset({"write", "applypatch", "edit", "multiedit", "strreplace", "notebookedit"})
_TEST_RUNNERS: Final = "pytest|jest|vitest|mocha|tox|ctest|(?:make|npm|pnpm|yarn|go|cargo) (?:run )?test"
_TEST_COMMAND: Final = re.compile(rf"(?:^|\W)(?:{_TEST_RUNNERS})\b")
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*|[^/]*[._-](?:test|spec)\.[^/]+)")
_COMMAND_WORD: Final = re.compile(r"[a-z][a-z0-9._-]*", re.IGNORECASE)
_LATIN: Final = re.compile(r"[a-z][a-z0-9+#.-]*[a-z0-9+#]", re.IGNORECASE)
_HAN: Final = re.compile(r"[\u4e00-\u9fff]{2,}")

_FUNCTION_WORDS: Final = """
the and for with that this from have has was are not you your can will how what why when where who use using used into
out add get set make does did its but all any one new please help need want should could would
"""
_STOP_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
_STOP_CHARACTERS: Final = frozenset(
    "的了是在我你他她它们这那有和与或就都也很吗呢吧啊着过把被让给对从到向为以及而但不没请要会能可什么怎么如何哪几再"
)

DOCUMENT_SUFFIXES: Final = frozenset({".md", ".rst", ".txt", ".adoc"})
LANGUAGES: Final[Mapping[str, str]] = {
    ".py": "Python", ".ts": "TypeScript", ".tsx": "TypeScript", ".js": "JavaScript", ".mjs": "JavaScript",
    ".jsx": "JavaScript", ".vue": "Vue", ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin",
    ".swift": "Swift", ".c": "C", ".h": "C", ".cpp": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP",
    ".sql": "SQL", ".sh": "Shell", ".css": "CSS", ".html": "HTML", ".ipynb": "Python",
}  # fmt: skip


def text_of(event: Event, name: str) -> str:
    value = event.payload.get(name)
    return value if isinstance(value, str) else ""


def details_of(event: Event) -> Mapping[str, Any]:
    details = event.payload.get("details")
    return details if isinstance(details, dict) else {}


def path_of(event: Event) -> str:
    value = details_of(event).get("file_path")
    return value.replace("\\", "/") if isinstance(value, str) else ""


def _suffix(path: str) -> str:
    return posixpath.splitext(path)[1].lower()


def stage_of(event: Event) -> str | None:
    """The stage that a tool call names, or that its tool, file or command implies; None for other events."""
    if event.type != TOOL_CALL:
        return None
    explicit = text_of(event, "stage").strip().lower()
    if explicit:
        return explicit[:MAX_STAGE_CHARS]
    path, command = path_of(event), details_of(event).get("command")
    if isinstance(command, str) and _TEST_COMMAND.search(command):
        return "test"
    if text_of(event, "tool").lower() not in _EDIT_TOOLS:
        return None
    if _TEST_FILE.search(path):
        return "test"
    return "document" if _suffix(path) in DOCUMENT_SUFFIXES else "implement"


def language_of(event: Event) -> str | None:
    return LANGUAGES.get(_suffix(path_of(event)))


def action_of(event: Event) -> str | None:
    """What a tool call did, without its object: `Shell npm test`, `Read .py`. None for other events."""
    if event.type != TOOL_CALL:
        return None
    return action_name(text_of(event, "tool"), details_of(event).get("command"), path_of(event))


def action_name(tool: str, command: object, path: str) -> str | None:
    """The name of an action; None without a tool."""
    tool = tool.strip()
    if not tool:
        return None
    if isinstance(command, str) and command.strip():
        words = [word for word in command.split()[:3] if _COMMAND_WORD.fullmatch(word)]
        return " ".join([tool, *words[:2]])[:MAX_ACTION_CHARS]
    return f"{tool} {_suffix(path)}".strip()[:MAX_ACTION_CHARS]


def outcome_of(event: Event) -> bool | None:
    """Whether a tool call succeeded; None if unknown."""
    for fields in (event.payload, details_of(event)):
        code = fields.get("exit_code")
        if isinstance(code, int) and not isinstance(code, bool):
            return code == 0
        if isinstance(fields.get("success"), bool):
            return bool(fields["success"])
        if fields.get("error"):
            return False
        status = fields.get("status")
        if status in ("error", "failed", "failure"):  # not a set: the value may be unhashable
            return False
        if status in ("ok", "success", "completed"):
            return True
    return None


def question_of(event: Event) -> str | None:
    """The user's question in an event, if it has one."""
    if event.type == EXCHANGE_RECORDED:
        return text_of(event, "question") or None
    if event.type == MESSAGE and event.payload.get("role") == "user":
        return text_of(event, "content") or None
    return None


def topic_text_of(event: Event) -> str:
    """The text of an event that names its topics."""
    kinds = {MEMORY_FACT: "content", USER_FEEDBACK: "content"}
    return question_of(event) or text_of(event, kinds.get(event.type, "title"))


def terms_of(text: str) -> Iterator[str]:
    """Possible topics of a text: its uncommon Latin words, and its Chinese words.

    Without a segmenter these are every two to four Chinese characters in a row.
    """
    for word in _LATIN.findall(text):
        if len(word) > 2 and word.casefold() not in _STOP_WORDS:
            yield word.casefold()
    for run in _HAN.findall(text):
        if (words := content_words(run)) is not None:
            yield from words
            continue
        for size in (2, 3, 4):
            for start in range(len(run) - size + 1):
                piece = run[start : start + size]
                if not _STOP_CHARACTERS.intersection(piece):
                    yield piece
