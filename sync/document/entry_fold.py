"""The history of one entry of the shared document, folded; and how the lines of a section stand. Pure.

The rules are those of `sync.document.shared`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sync.document.capture import EDITED, REMOVED
from sync.document.deeds import COUNTED, MOVED, NOTED, Deed, Place, hashed, twin
from sync.document.edit import entry_text
from sync.document.likeness import once_more
from sync.document.merge import merge_words
from sync.document.model import Section


@dataclass(slots=True)
class Line:
    """An entry as the fold has it. `places` are all it ever had, the last one counts; `flagged`: two edits met.

    `text` is empty while nobody has said it. `copies` are the ids under which it still stands somewhere.
    """

    entry_id: str
    text: str
    places: list[Place]
    flagged: bool = False
    copies: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)  # removed before anybody added them
    said: dict[str, str] = field(default_factory=dict)  # every text it has had, by its hash

    @property
    def alive(self) -> bool:
        return bool(self.copies) and bool(self.text)

    @property
    def place(self) -> Place:
        return self.places[-1]

    def says(self, text: str) -> None:
        self.text = text
        self.said[hashed(text)] = text


class EntryFold:
    """The history of one entry, folded: the line, and a line beside it for every edit that met another one."""

    def __init__(self, root: str, members: Iterable[str], deeds: Mapping[str, list[Deed]]) -> None:
        self._root = root
        self._deeds = deeds
        self._lines: list[Line] = []
        known = [deed for member in members for deed in deeds.get(member, ())]
        born = {deed.entry_id: deed.device for deed in reversed(known) if deed.is_birth}
        self._waiting = [deed for deed in known if deed.shared or born.get(deed.entry_id, deed.device) == deed.device]
        heapq.heapify(self._waiting)

    def fold(self) -> list[Line]:
        while self._waiting:
            deed = heapq.heappop(self._waiting)
            line = self._meant(deed)
            if deed.kind == REMOVED:
                _remove(line, deed)
            elif deed.kind == MOVED:
                _put(line, deed)
            elif deed.kind in {COUNTED, NOTED}:
                _note(line, deed)
            else:
                self._say(line, deed)
        return self._lines

    def _meant(self, deed: Deed) -> Line:
        """The line an event speaks of: the one it names or, after a conflict, the one that has said its base."""
        if not self._lines:
            self._lines.append(Line(self._root, "", [deed.place or Place(deed.order, (), last=True)]))
        for line in self._lines[1:]:
            if line.entry_id == deed.entry_id:
                return line
        for line in self._lines:
            if deed.base_hash == hashed(line.text):
                return line
        return next((line for line in reversed(self._lines) if deed.base_hash in line.said), self._lines[0])

    def _say(self, line: Line, deed: Deed) -> None:
        """An addition or an edit. What is edited comes back; what is added comes back where it was not known gone."""
        text = _outcome(line, deed)
        if text is None:
            self._beside(line, deed)
            return
        if not deed.is_birth or not line.alive:
            first = not line.text
            if first and deed.place is not None:
                line.places[:] = [deed.place]
            else:
                _put(line, deed)
        line.says(text)
        if not deed.is_birth or deed.entry_id not in line.gone:
            line.copies.add(deed.entry_id)

    def _beside(self, line: Line, deed: Deed) -> None:
        section = deed.place.section if deed.place else line.place.section
        after = line.entry_id if section == line.place.section else None
        place = Place(deed.order, section, after=after, last=after is None)
        beside = Line(twin(deed.entry_id, deed.event_id), "", [place], flagged=True, copies={deed.entry_id})
        beside.says(deed.text)
        line.flagged = True
        self._lines.append(beside)
        for later in self._deeds.get(beside.entry_id, ()):
            if later.shared:
                heapq.heappush(self._waiting, later)


def _outcome(line: Line, deed: Deed) -> str | None:
    """What the line says after an addition or an edit; None where both texts have to stay."""
    if not line.text or deed.text == line.text or (deed.is_birth and not line.alive):
        return deed.text
    base = deed.base if deed.base is not None else line.said.get(deed.base_hash or "")
    if base is not None:
        return _merged(base, line.text, deed.text)
    # An edit by the only writer of its own document follows from the one before, also where that one never came.
    return None if deed.shared or deed.is_birth else deed.text


def _remove(line: Line, deed: Deed) -> None:
    """Take a line away, unless it says something by now that whoever took it away had not seen."""
    if not line.text:
        line.gone.add(deed.entry_id)
    elif not deed.shared:
        line.copies.discard(deed.entry_id)  # the device's own copy of it
    elif deed.base_hash is None or deed.base_hash == hashed(line.text):
        line.copies.clear()


def _note(line: Line, deed: Deed) -> None:
    """Said once, or once more. A count brings back what was taken away; what was merely noted before stays gone."""
    first = not line.text
    if first:
        line.says(deed.text)
        if deed.place is not None:
            line.places[:] = [deed.place]
    elif deed.kind == COUNTED:
        line.says(once_more(line.text))
    if deed.kind == COUNTED or (first and deed.entry_id not in line.gone):
        line.copies.add(deed.entry_id)


def _put(line: Line, deed: Deed) -> None:
    """Give the line the place an event names; an edit in place names none of its own."""
    place = deed.place
    if place is None or (deed.kind == EDITED and place.last and place.section == line.place.section):
        return
    line.places.append(place)


def _merged(base: str, ours: str, theirs: str) -> str | None:
    text = merge_words(base, ours, theirs)
    return text if text is None or text in {ours, theirs} or text == entry_text(text) else None


def arranged(section: Section, lines: dict[str, Line], root: Callable[[str], str]) -> Iterator[Line]:
    """The living lines whose last place is in this section; each place ever taken is known to those behind it."""
    placed = sorted(
        (place.order, not place.last, number, line.entry_id, place)
        for line in lines.values()
        for number, place in enumerate(line.places)
        if place.section == section
    )
    following: dict[tuple[str, int] | None, tuple[str, int] | None] = {None: None}
    newest: dict[str, tuple[str, int]] = {}
    tail: tuple[str, int] | None = None
    for _, _, number, entry_id, place in placed:
        node = (entry_id, number)
        anchor = None if place.after is None else newest.get(root(place.after))
        before = tail if place.last or (place.after is not None and anchor is None) else anchor
        following[node], following[before] = following[before], node
        tail = node if before == tail else tail
        newest[entry_id] = node
    at = following[None]
    while at is not None:
        line = lines[at[0]]
        if line.alive and at[1] == len(line.places) - 1:
            yield line
        at = following[at]
