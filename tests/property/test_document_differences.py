"""A version that is stored as a difference is the version, whatever the document and whatever happened to it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.document.differences import Difference, read_whole, same_form, whole
from sync.document.draft import Draft
from sync.document.likeness import letters
from sync.document.model import Snapshot
from sync.document.parse import parse
from sync.document.weighing import Known
from tests.property.test_document_properties import change, documents, named, snapshots


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """A document step by step: changed by the program, or replaced by a hand, which keeps some ids."""
    found = [draw(snapshots())]
    for step in range(draw(st.integers(1, 8))):
        draft = Draft(found[-1])
        for number in range(draw(st.integers(1, 3))):
            change(draft, f"{step}.{number}", draw(st.data()))
        found.append(draft.freeze() if draw(st.integers(0, 4)) else named(parse(draw(documents())), f"h{step}."))
    return found


@given(histories())
@settings(max_examples=200)
def test_what_is_stored_as_a_difference_is_read_as_it_was(history: list[Snapshot]) -> None:
    base = before = history[0]
    data, ids = whole(base)
    assert read_whole(data, ids) == base
    known = Difference.none(data, base)
    for now in history[1:]:
        following = known.following(before, now) if same_form(before.document, now.document) else None
        if following is None:
            base, known = now, Difference.none(whole(now)[0], now)
        else:
            known = Difference.read(*following.stored())
            assert known == following
            assert known.of(base) == now
        before = now


@given(histories(), st.text("用户问好甲乙茶", max_size=12))
def test_what_is_known_of_a_document_step_by_step_is_what_one_look_at_it_tells(
    history: list[Snapshot], words: str
) -> None:
    followed = Known()
    for snapshot in history:
        followed.follow(snapshot)
        fresh = Known()
        fresh.follow(snapshot)
        answer = words + "".join(letters(entry.text) for entry in snapshot.entries)
        assert sorted(followed.lines.begun_in(answer)) == sorted(fresh.lines.begun_in(answer))
        for entry in snapshot.entries:
            assert followed.wants(entry.text) == fresh.wants(entry.text)
            assert followed.asked(entry.text) == fresh.asked(entry.text)
