"""Parse and render a note, and edit parts of its text. Pure.

A reader takes what it knows, under the names that other programs write (`- **Id**: x`, `One-liner (for injection)`); an
edit changes the lines that it names and keeps every other byte.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sync.notes.model import META_FIELDS, Note

META: Final = "Meta"
SECTIONS: Final = ("When to load", "One-liner", "Context / Decision", "Pointers")
DECISION_FIELDS: Final = ("Decision", "Signals", "Alternatives", "Counter-signals")
MAX_SECTION_NAME: Final = 200  # characters; a longer heading is no section of the seed

_HEADING: Final = re.compile(r"^(#{1,6})[ \t](.*)$")
_META_LINE: Final = re.compile(
    r"^([ \t]*[-*+][ \t]+)(\*\*)?([A-Za-z][\w -]{0,40}?)(\*\*)?([ \t]*[:：][ \t]*)(\*\*)?(.*)$"
)
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SECTION_NAMES: Final = {name.casefold().replace(" ", ""): name for name in (META, *SECTIONS)}
_META_NAMES: Final = {name.casefold(): name for name in META_FIELDS}


def parse_note(text: str) -> Note:
    """Read a note. Whatever it lacks is empty; the title is that of Meta, else the first heading."""
    heading, meta = "", dict[str, str]()
    sections: dict[str, list[str]] = {}
    for line, level, name, is_heading in _lines_with_section(text):
        if is_heading:
            heading = heading or (name if level == 1 else "")
            continue
        if name == META and (found := _meta_of(line)) is not None:
            meta.setdefault(*found)
        elif name and name != META:
            sections.setdefault(name, []).append(line)
    title = meta.get("Title") or heading
    return Note(text, title, meta, {name: "\n".join(lines).strip() for name, lines in sections.items()})


def render_note(
    meta: Mapping[str, str],
    *,
    when_to_load: Sequence[str],
    one_liner: str,
    decision: Mapping[str, str],
    pointers: Sequence[str],
) -> str:
    """A new note with all sections. Fields without a value stay, so that a person sees where to add one."""
    lines = [f"# {meta['Title']}", "", f"## {META}", ""]
    lines += [f"- **{name}**: {meta.get(name, '')}".rstrip() for name in META_FIELDS]
    lines += ["", "## When to load", "", *(f"- {line}" for line in when_to_load)]
    lines += ["", "## One-liner", "", one_liner]
    lines += ["", "## Context / Decision", ""]
    more = [name for name in decision if name not in DECISION_FIELDS and decision[name]]
    lines += [f"- **{name}**: {decision.get(name, '')}".rstrip() for name in (*DECISION_FIELDS, *more)]
    lines += ["", "## Pointers", "", *(f"- {pointer}" for pointer in pointers)]
    return "\n".join(lines).rstrip() + "\n"


def with_meta(text: str, changes: Mapping[str, str]) -> str:
    """The text with other values of these Meta fields; a field that is missing is added below the others."""
    lines = text.splitlines(keepends=True)
    left, last_meta, meta_heading = dict(changes), None, None
    headings: list[tuple[int, int]] = []
    for at, (line, level, name, is_heading) in enumerate(_lines_with_section(text)):
        if is_heading:
            headings.append((at, level))
        if is_heading and name == META:
            meta_heading = at
        if is_heading or name != META or (found := _meta_of(line)) is None:
            continue
        last_meta = at
        if found[0] in left:
            lines[at] = _with_value(lines[at], left.pop(found[0]))
    if left:
        added = [f"- **{name}**: {value}{_newline_of(text)}" for name, value in left.items()]
        if last_meta is None and meta_heading is None:
            return _with_new_meta(lines, added, headings, _newline_of(text))
        _insert_meta(lines, added, last_meta, meta_heading, _newline_of(text))
    return "".join(lines)


def with_bullet(text: str, section: str, bullet: str) -> str:
    """The text with one more line in a section, at its end. The same text if the section has that line."""
    newline = _newline_of(text)
    lines = text.splitlines(keepends=True)
    own = [
        at
        for at, (_, _, name, is_heading) in enumerate(_lines_with_section(text))
        if name == section and not is_heading
    ]
    heads = [
        at for at, (_, _, name, is_heading) in enumerate(_lines_with_section(text)) if name == section and is_heading
    ]
    if any(lines[at].strip().lstrip("-*+").strip() == bullet for at in own):
        return text
    if not heads:
        end = "" if not text or text.endswith(("\n", "\r")) else newline
        return f"{text}{end}{newline}## {section}{newline}{newline}- {bullet}{newline}"
    filled = [at for at in own if lines[at].strip()]
    at = filled[-1] if filled else heads[0]
    before = [] if filled else [newline]
    if not lines[at].endswith(("\n", "\r")):
        lines[at] += newline
    lines[at + 1 : at + 1] = [*before, f"- {bullet}{newline}"]
    return "".join(lines)


def _lines_with_section(text: str) -> Iterator[tuple[str, int, str, bool]]:
    """Each line without its end, the level of the heading above it, that heading's name, and whether it is one.

    A heading below another's section belongs to it; lines of a code fence are no headings.
    """
    level, name, fence = 0, "", None
    for line in text.removeprefix("\ufeff").splitlines():
        mark = _FENCE.match(line)
        if fence is None and mark is not None:
            fence = mark[1]
        elif fence is not None and mark is not None and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = None
        heading = _HEADING.match(line) if fence is None else None
        if heading is not None and (level in {0, 1} or len(heading[1]) <= level):
            level, name = len(heading[1]), _section_name(heading[2].strip(" \t").rstrip("#").rstrip(" \t"))
            yield line, level, name, True
        else:
            yield line, level, name if level > 1 else "", False


def _section_name(heading: str) -> str:
    """The usual name of a section, or the heading as it is: `One-liner (for injection)` is One-liner."""
    if len(heading) > MAX_SECTION_NAME:
        return heading
    plain = re.sub(r"[(（].*?[)）]", "", heading).casefold().replace(" ", "").replace("／", "/")
    return _SECTION_NAMES.get(plain, heading)


def _meta_of(line: str) -> tuple[str, str] | None:
    found = _META_LINE.match(line)
    return None if found is None else (_META_NAMES.get(found[3].casefold(), found[3]), found[7].strip())


def _with_value(line: str, value: str) -> str:
    content = line.rstrip("\r\n")
    found = _META_LINE.match(content)
    assert found is not None  # the caller has parsed it
    mark, bold, name, closed, colon, late = (found[group] or "" for group in range(1, 7))
    space = colon if not value or colon[-1:].isspace() else f"{colon} "
    return f"{mark}{bold}{name}{closed}{space}{late}{value}".rstrip() + line[len(content) :]


def _insert_meta(lines: list[str], added: list[str], last_meta: int | None, heading: int | None, newline: str) -> None:
    if last_meta is not None:
        at = last_meta
        if not lines[at].endswith(("\n", "\r")):
            lines[at] += newline
        lines[at + 1 : at + 1] = added
    elif heading is not None:
        lines[heading + 1 : heading + 1] = [newline, *added]


def _with_new_meta(lines: list[str], added: list[str], headings: Sequence[tuple[int, int]], newline: str) -> str:
    """The text with a Meta below its first heading of level 1, else before its first heading or at the beginning.

    `headings`: the line and the level of each.
    """
    bom = "\ufeff" if lines and lines[0].startswith("\ufeff") else ""
    if bom:
        lines[0] = lines[0].removeprefix(bom)
    section = [f"## {META}{newline}", newline, *added, newline]
    title = next((at for at, level in headings if level == 1), None)
    if title is None:
        at = headings[0][0] if headings else 0
        lines[at:at] = section
    else:
        if not lines[title].endswith(("\n", "\r")):
            lines[title] += newline
        lines[title + 1 : title + 1] = [newline, *section]
    return bom + "".join(lines)


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
