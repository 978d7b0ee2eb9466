"""Puts what we know into a document a person has saved: our new lines, our edits, our removals, our headings.

A line of ours goes behind the line it follows in our document, if that one is still in its section; else before the
line it precedes; else at the end of its section. One that opens a paragraph of its own goes behind the whole paragraph
of its neighbour, so that lines typed there stay with what they were typed under.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sync.document.draft import Draft
from sync.document.edit import entry_text, last_place
from sync.document.model import Entry, Kind, Section, Snapshot
from sync.document.places import content_end, reach_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one entry on disk.

    `text` is what it must say, None if it goes. `rival` is our line that stays before it because both sides changed
    the same words. `regroup`: we moved it to another section and the hand did not.
    """

    entry_id: str
    text: str | None
    rival: Entry | None = None
    regroup: bool = False


def graft(observed: Snapshot, verdicts: Sequence[Verdict], missing: Iterable[Entry], known: Snapshot) -> Draft:
    """The file as found with the verdicts carried out and the `missing` entries of ours put in.

    Removals come last, so that a day that loses one line and gets another keeps its heading.
    """
    draft = Draft(observed)
    arrivals = {entry.entry_id: entry for entry in missing}
    before = dict(zip(observed.ids, observed.document.entries, strict=True))
    for verdict in verdicts:
        at = draft.index_of(verdict.entry_id) if _touches(verdict, before[verdict.entry_id].text) else None
        if at is None or verdict.text is None:
            continue
        draft.edit(at, verdict.text)
        if verdict.rival is not None:
            rival = verdict.rival
            section = draft.cells[at].block.section
            draft.insert(at, [draft.cell(entry_text(rival.text), section=section, entry_id=rival.entry_id)])
        if verdict.regroup:
            arrivals[verdict.entry_id] = Entry(verdict.entry_id, verdict.text)
            draft.remove(at)
    _Places(draft, known).fill(arrivals)
    for verdict in verdicts:
        at = draft.index_of(verdict.entry_id) if verdict.text is None else None
        if at is not None:
            draft.remove_entry(at)
    return draft


def graft_headings(draft: Draft, origin: Snapshot, known: Snapshot) -> None:
    """Headings only we changed: an empty one we have made appears, one we have taken away goes once it is empty."""
    before, now = _headings(origin), _headings(known)
    full = {section[:depth] for section in (entry.section for entry in known.entries) for depth in range(len(section))}
    full |= {entry.section for entry in known.entries}
    for section in now:
        if section and section not in before and section not in full:
            draft.ensure_section(section)
    for at in range(len(draft.cells) - 1, -1, -1):
        block = draft.cells[at].block if at < len(draft.cells) else None
        if block is None or block.kind is not Kind.HEADING or block.section in now or block.section not in before:
            continue
        if content_end(draft.cells, at + 1, reach_of(draft.cells, at)) == at + 1:
            draft.remove(at)


class _Places:
    """Where entries of the known document belong in a draft."""

    def __init__(self, draft: Draft, known: Snapshot) -> None:
        self._draft = draft
        self._entries = known.entries
        self._opening, self._closing = _paragraph_ends(known)
        self._peers: defaultdict[Section, list[str]] = defaultdict(list)
        for entry in self._entries:
            self._peers[entry.section].append(entry.entry_id)

    def fill(self, arrivals: dict[str, Entry]) -> None:
        """Put the arrivals in, in the order of the known document, each with the text it arrives with."""
        for entry in self._entries:
            if entry.entry_id in arrivals:
                self._put(replace(entry, text=entry_text(arrivals[entry.entry_id].text)))

    def _put(self, entry: Entry) -> None:
        draft = self._draft
        at, section = self._place(entry)
        opens = entry.entry_id in self._opening and draft.is_entry(at - 1)
        closes = entry.entry_id in self._closing or not draft.is_entry(at)
        draft.insert(
            at, [draft.cell(entry.text, section=section, entry_id=entry.entry_id)], gap_before=opens, gap_after=closes
        )

    def _place(self, entry: Entry) -> tuple[int, Section]:
        peers = self._peers[entry.section]
        own = peers.index(entry.entry_id)
        for peer in reversed(peers[:own]):
            at = self._standing(peer, entry.section)
            if at is not None:
                at += 1
                while entry.entry_id in self._opening and self._draft.is_entry(at):
                    at += 1
                return at, entry.section
        for peer in peers[own + 1 :]:
            at = self._standing(peer, entry.section)
            if at is not None:
                return at, entry.section
        return last_place(self._draft, entry.section)

    def _standing(self, entry_id: str, section: Section) -> int | None:
        at = self._draft.index_of(entry_id)
        return at if at is not None and self._draft.cells[at].block.section == section else None


def _touches(verdict: Verdict, text: str) -> bool:
    return verdict.text != text or verdict.rival is not None or verdict.regroup


def _headings(snapshot: Snapshot) -> list[Section]:
    return [block.section for block in snapshot.document.blocks if block.kind is Kind.HEADING]


def _paragraph_ends(snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """Ids of entries with a blank line before them, and of those with one behind them."""
    blocks = snapshot.document.blocks
    ids = iter(snapshot.ids)
    opening: set[str] = set()
    closing: set[str] = set()
    for at, block in enumerate(blocks):
        if block.kind is not Kind.ENTRY:
            continue
        entry_id = next(ids)
        if at > 0 and blocks[at - 1].kind is Kind.BLANK:
            opening.add(entry_id)
        if at + 1 < len(blocks) and blocks[at + 1].kind is Kind.BLANK:
            closing.add(entry_id)
    return opening, closing
