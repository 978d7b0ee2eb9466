"""A version stored or kept as a delta is read unchanged, for any document and any history."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.document.capture.capture_policy import DocumentIndex
from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse
from sync.document.merge.text_equality import line_letters
from sync.document.version_delta import VersionDelta, decode_whole, encode_whole, same_encoding
from sync.document.versions.served_snapshots import ServedSnapshots
from tests.proof import examples
from tests.property.document.markdown.test_any_document import change, documents, named, snapshots


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """A document step by step: changed by the program, or replaced by an edit that keeps some ids."""
    found = [draw(snapshots())]
    for step in range(draw(st.integers(1, 8))):
        draft = BlockEditor(found[-1])
        for number in range(draw(st.integers(1, 3))):
            change(draft, f"{step}.{number}", draw(st.data()))
        found.append(draft.to_snapshot() if draw(st.integers(0, 4)) else named(parse(draw(documents())), f"h{step}."))
    return found


@given(histories())
@settings(max_examples=examples(200))
def test_what_is_stored_as_a_difference_is_read_as_it_was(history: list[Snapshot]) -> None:
    base = before = history[0]
    data, ids = encode_whole(base)
    assert decode_whole(data, ids) == base
    known = VersionDelta.of_base(data, base)
    for now in history[1:]:
        following = known.next_delta(before, now) if same_encoding(before.document, now.document) else None
        if following is None:
            base, known = now, VersionDelta.of_base(encode_whole(now)[0], now)
        else:
            known = VersionDelta.decode(*following.encode())
            assert known == following
            assert known.apply_to(base) == now
        before = now


@given(histories(), st.text("用户问好甲乙茶", max_size=12))
def test_a_delta_computed_step_by_step_equals_one_computed_at_once(history: list[Snapshot], words: str) -> None:
    followed = DocumentIndex()
    for snapshot in history:
        followed.update(snapshot)
        fresh = DocumentIndex()
        fresh.update(snapshot)
        answer = words + "".join(line_letters(entry.text) for entry in snapshot.entries)
        assert sorted(followed.lines.candidates_in(answer)) == sorted(fresh.lines.candidates_in(answer))
        for entry in snapshot.entries:
            assert followed.exchanges_asking(entry.text) == fresh.exchanges_asking(entry.text)


@given(histories())
def test_a_served_snapshot_is_found_as_it_was(history: list[Snapshot]) -> None:
    served = ServedSnapshots()
    for number, snapshot in enumerate(history):
        served.add(snapshot, number)
    for number, snapshot in {one.document.sha256: (at, one) for at, one in enumerate(history)}.values():
        found = served.find(snapshot.document.sha256)
        assert found is not None
        assert (found.number, found.label, found.snapshot) == (number, snapshot.document.label, snapshot)
