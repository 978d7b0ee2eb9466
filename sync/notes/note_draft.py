"""From a payload to a note: its Meta, its sentences, and what a merge adds. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from sync.notes.model import (
    ACTIVE,
    LIST_SEPARATOR,
    LOCAL,
    NOTES_PREFIX,
    Audience,
    Layer,
    Note,
    NoteFile,
    Payload,
    Source,
)
from sync.notes.note_format import render_note, with_bullet, with_meta

TITLE_CHARS: Final = 60
SOURCE_NAMES: Final[Mapping[Source, str]] = {"auto": "auto", "remember": "manual", "choice": "user", "init": "init"}
SCOPES: Final[Mapping[Audience, str]] = {"personal": "narrow", "project": "medium", "team": "broad"}
_DECIDED: Final = (
    "优先",
    "先",
    "一律",
    "统一",
    "默认",
    "总是",
    "始终",
    "必须",
    "不",
    "别",
    "禁止",
    "避免",
)  # need no 优先
_CHINESE: Final = re.compile("[\u4e00-\u9fff]")
_END: Final = " \t。．.；;，,！!"
_LEADING_IN: Final = re.compile(r"^(?:在|当|in |when |while )\s*", re.IGNORECASE)


def is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def fact_sentence(payload: Payload) -> str:
    """L0: in the scene something happened, which led to the choice; without evidence only the choice is stated."""
    scene, choice, evidence = _scene(payload), payload.choice.strip(_END), payload.evidence.strip(_END)
    if is_chinese(scene + choice):
        return f"在{scene}下发生了{evidence}，导致选择{choice}。" if evidence else f"在{scene}下选择了{choice}。"
    return (
        f"In {scene}: {evidence}, so the choice was {choice}." if evidence else f"In {scene}, the choice was {choice}."
    )


def principle_sentence(payload: Payload, *, is_bounded: bool) -> str:
    """L1: prefer the choice, avoid what was rejected, because of the evidence; only what the payload says."""
    scene, choice, evidence = _scene(payload), payload.choice.strip(_END), payload.evidence.strip(_END)
    rejected = [principle.strip(_END) for principle in payload.rejected]
    if is_chinese(scene + choice):
        avoid = f"，避免{'、'.join(rejected)}" if rejected else ""
        reason = f"，因为{evidence}" if evidence else ""
        bounds = "（仅限该场景，情况变化后需重新确认）" if is_bounded else ""
        prefer = "" if choice.startswith(_DECIDED) else "优先"
        return f"在{scene}中{prefer}{choice}{avoid}{reason}{bounds}。"
    avoid = f"; avoid {', '.join(rejected)}" if rejected else ""
    reason = f", because {evidence}" if evidence else ""
    bounds = " (within this scene only; confirm it again when the situation changes)" if is_bounded else ""
    return f"In {scene}, prefer {choice}{avoid}{reason}{bounds}."


def one_liner(payload: Payload, layer: Layer) -> str:
    """The one sentence to inject: the principle if the score card allows it, else the fact."""
    if layer is Layer.L0:
        return fact_sentence(payload)
    return principle_sentence(payload, is_bounded=layer is Layer.WEAK_L1)


def title_of(payload: Payload) -> str:
    title = f"{payload.scene.strip(_END)}：{payload.choice.strip(_END)}"
    if not is_chinese(title):
        title = title.replace("：", ": ", 1)
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"


def meta_of(payload: Payload, layer: Layer, *, note_id: str, now: str, session: str, supersedes: str) -> dict[str, str]:
    """The Meta of a new note. `enforced` is given by hand only; a weak principle or a habit of one user is `local`."""
    is_local = payload.apply == "personal" or layer is Layer.WEAK_L1
    return {
        "Id": note_id,
        "Title": title_of(payload),
        "Kind": "decision" if layer is Layer.L0 else "pattern",
        "Status": LOCAL if is_local else ACTIVE,
        "Strength": "validated" if payload.confidence == "high" else "hypothesis",
        "Scope": SCOPES[payload.apply],
        "Audience": payload.apply,
        "Portability": "cross-project" if payload.apply == "team" else "project-only",
        "Source": SOURCE_NAMES[payload.source],
        "Tags": "",
        "Supersedes": supersedes,
        "CreatedAt": now,
        "UpdatedAt": now,
        "Session": session,
    }


def new_note_text(payload: Payload, layer: Layer, *, note_id: str, now: str, session: str, supersedes: str = "") -> str:
    """The text of a new note."""
    decision = {
        "Decision": payload.choice,
        "Fact": fact_sentence(payload) if layer is Layer.BOTH else "",
        "Signals": payload.evidence,
        "Alternatives": LIST_SEPARATOR.join(payload.rejected),
        "Counter-signals": _bounds(payload) if layer is Layer.WEAK_L1 else "",
    }
    return render_note(
        meta_of(payload, layer, note_id=note_id, now=now, session=session, supersedes=supersedes),
        when_to_load=[payload.scene],
        one_liner=one_liner(payload, layer),
        decision=decision,
        pointers=(),
    )


def merged_note_text(note: Note, payload: Payload, *, now: str, session: str) -> str:
    """The note with the scene, the evidence and the rejected options that it lacks. The same text if it lacks none."""
    text = note.text
    if _comparable(payload.scene) not in {_comparable(line) for line in note.when_to_load}:
        text = with_bullet(text, "When to load", payload.scene)
    decision = _comparable(note.sections.get("Context / Decision", ""))
    if payload.evidence and _comparable(payload.evidence) not in decision:
        text = with_bullet(text, "Context / Decision", f"**Signals**: {payload.evidence}")
    added = [option for option in payload.rejected if _comparable(option) not in decision]
    if added:
        text = with_bullet(text, "Context / Decision", f"**Alternatives**: {LIST_SEPARATOR.join(added)}")
    if text == note.text:
        return text
    return with_meta(text, {"UpdatedAt": now, "Session": session} if session else {"UpdatedAt": now})


def in_words(file: NoteFile | None, payload: Payload | None) -> str:
    """The scene and the choice of a note before a question's answer, and those after it, as lines of a diff."""
    lines = []
    if file is not None:
        scenes = LIST_SEPARATOR.join(file.note.when_to_load) or file.note.title
        lines.append(f"- {scenes} → {file.note.decision}")
    if payload is not None:
        lines.append(f"+ {payload.scene} → {payload.choice}")
    return "\n".join(lines)


def index_row(file: NoteFile) -> dict[str, str]:
    """The row of a note in INDEX.md."""
    meta, note = file.note.meta, file.note
    names = ("Kind", "Status", "Strength", "Scope", "Supersedes", "CreatedAt", "UpdatedAt", "Source", "Session")
    return {
        "Id": file.note_id,
        "Title": note.title,
        "When to load": LIST_SEPARATOR.join(note.when_to_load),
        **{name: meta.get(name, "") for name in names},
        "File": file.file,
    }


def note_file_name(note_id: str) -> str:
    return f"{NOTES_PREFIX}{note_id}.md"


def superseded_ids(note: Note) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,，;；、]+", note.meta.get("Supersedes", "")) if part)


def pointer(file: NoteFile, base: str) -> str:
    """The path of a note below the project, such as `.xiaobai/memory/notes/MEM-1.md`."""
    return f"{base}/{file.file}"


def reminder(note: Note, limit: int) -> str:
    """One or two sentences to inject: the one-liner, else the title."""
    text = note.one_liner or note.title
    sentences = [part for part in re.split(r"(?<=[。！？!?])|(?<=\.)\s", text) if part.strip()]
    short = "".join(sentences[:2]).strip() if is_chinese(text) else " ".join(part.strip() for part in sentences[:2])
    return short if len(short) <= limit else short[: limit - 1] + "…"


def _scene(payload: Payload) -> str:
    """The scene without the preposition that the sentence has already."""
    scene = _LEADING_IN.sub("", payload.scene).strip(_END)
    for end in ("的时候", "时候", "时", "下", "中"):
        if is_chinese(scene) and scene.endswith(end) and len(scene) > len(end) + 1:
            return scene.removesuffix(end)
    return scene


def _bounds(payload: Payload) -> str:
    if is_chinese(payload.scene):
        return f"只适用于：{payload.scene}；一次性情形，情况变化后重新确认"
    return f"Applies to: {payload.scene}; a single occasion, confirm again when it changes"


def _comparable(text: str) -> str:
    return "".join(text.casefold().split())
