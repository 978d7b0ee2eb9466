"""The document of a new memory, and the titles of its sections.

A `Section` path has the Chinese titles for the sections of the template, whatever the language of the document:
`canonical_section` maps the English ones. So events, devices and documents of both languages mean the same section.
"""

from typing import Final

from sync.document.markdown.model import KIND_LETTERS, BlockKind, MemoryDocument, Section
from sync.document.markdown.words import WORDS
from sync.texts.language import EN, ZH, Language

PREFERENCES: Final = "用户偏好"
RECORDS: Final = "重要对话记录"
OPERATIONS: Final = "常用操作"
SECTIONS: Final = (PREFERENCES, RECORDS, OPERATIONS)  # in document order

WORK_HABITS: Final[Section] = (PREFERENCES, "工作习惯")
COMMUNICATION_STYLE: Final[Section] = (PREFERENCES, "沟通风格")
TECHNICAL_PREFERENCES: Final[Section] = (PREFERENCES, "技术偏好")
PERSONAL: Final[Section] = (PREFERENCES, "个人情况")
PREFERENCE_SECTIONS: Final = (WORK_HABITS, COMMUNICATION_STYLE, TECHNICAL_PREFERENCES, PERSONAL)
EARLIER: Final[Section] = (RECORDS, "更早的对话")  # below the days, newest first
DAILY_TASKS: Final[Section] = (OPERATIONS, "日常任务")
COMMON_COMMANDS: Final[Section] = (OPERATIONS, "常用命令")
# In document order; the first level shows a placeholder only if it has no subsections.
TEMPLATE_SECTIONS: Final[tuple[Section, ...]] = (
    (PREFERENCES,),
    *PREFERENCE_SECTIONS,
    (RECORDS,),
    (OPERATIONS,),
    DAILY_TASKS,
    COMMON_COMMANDS,
)
PLACEHOLDER_SECTIONS: Final = frozenset(TEMPLATE_SECTIONS) - {(PREFERENCES,), (OPERATIONS,)}

SEPARATOR: Final = "---"
QUESTION_PREFIXES: Final = tuple(words.question_prefix.rstrip() for words in WORDS.values())
ANSWER_PREFIXES: Final = tuple(words.answer_prefix.rstrip() for words in WORDS.values())

_ENGLISH_TITLES: Final[dict[Section, str]] = {
    (PREFERENCES,): "User preferences",
    WORK_HABITS: "Work habits",
    COMMUNICATION_STYLE: "Communication style",
    TECHNICAL_PREFERENCES: "Technical preferences",
    PERSONAL: "About me",
    (RECORDS,): "Important conversations",
    EARLIER: "Earlier conversations",
    (OPERATIONS,): "Common operations",
    DAILY_TASKS: "Daily tasks",
    COMMON_COMMANDS: "Common commands",
}
_TOP_LEVEL: Final = {title.casefold(): path[0] for path, title in _ENGLISH_TITLES.items() if len(path) == 1}
_SECOND_LEVEL: Final = {
    (path[0], title.casefold()): path[1] for path, title in _ENGLISH_TITLES.items() if len(path) == 2
}
_LANGUAGE_OF_TITLE: Final[dict[str, Language]] = (
    dict.fromkeys((title for path in _ENGLISH_TITLES for title in path), ZH)
    | dict.fromkeys((title.casefold() for title in _ENGLISH_TITLES.values()), EN)
    | {words.title.casefold(): language for language, words in WORDS.items()}
)


def canonical_section(section: Section) -> Section:
    """The section with the Chinese titles of the template in place of the English ones."""
    named: list[str] = []
    for title in section:
        named.append(canonical_title(named[-1] if named else "", title))
    return tuple(named)


def canonical_title(above: str, title: str) -> str:
    """The last title of a canonical section. `above`: the canonical title before it."""
    folded = title.casefold()
    return _SECOND_LEVEL.get((above, folded)) or _TOP_LEVEL.get(folded, title)


def heading_title(section: Section, language: Language) -> str:
    """The title that a section's heading has in a new document of a language."""
    return section[-1] if language is ZH else _ENGLISH_TITLES.get(section[-2:], section[-1])


def language_of(document: MemoryDocument) -> Language | None:
    """The language of a document: of its first heading from the template, else of its footer; None without both."""
    at = document.shape.find(KIND_LETTERS[BlockKind.HEADING])
    while at >= 0:
        found = _LANGUAGE_OF_TITLE.get(document.blocks[at].title.casefold())
        if found is not None:
            return found
        at = document.shape.find(KIND_LETTERS[BlockKind.HEADING], at + 1)
    footer = document.shape.rfind(KIND_LETTERS[BlockKind.FOOTER])
    return None if footer < 0 else footer_language(document.blocks[footer].raw)


def footer_language(line: str) -> Language:
    """The language of a footer."""
    return EN if "Last updated" in line else ZH


def question_of(line: str) -> str:
    """The question in the first line of an exchange, without the bullet and the speaker."""
    return next((line[len(prefix) :].lstrip() for prefix in QUESTION_PREFIXES if line.startswith(prefix)), line)


def footer_line(label: str, language: Language = ZH) -> str:
    """The last line of the document, without a line ending."""
    return f"{WORDS[language].footer_prefix}{label}"


def empty_document(label: str, language: Language = ZH) -> bytes:
    """An empty memory with `label` in its footer."""
    words = WORDS[language]
    lines = [f"# {words.title}", ""]
    for section in TEMPLATE_SECTIONS:
        if len(section) == 1 and section[0] != PREFERENCES:
            lines += [SEPARATOR, ""]
        lines.append(f"{'#' * (len(section) + 1)} {heading_title(section, language)}")
        if len(section) == 1:
            lines.append("")
        if section in PLACEHOLDER_SECTIONS:
            lines += [words.placeholder, ""]
    return "\n".join([*lines, SEPARATOR, "", footer_line(label, language), ""]).encode()
