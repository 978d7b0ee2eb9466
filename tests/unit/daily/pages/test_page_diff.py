"""What a manual edit of a page changed."""

import pytest

from sync.daily.pages.page_diff import PageBase, diff_page, is_of_other_account
from sync.daily.pages.page_format import parse
from sync.errors import InvalidInput
from tests.unit.daily.examples import DAY, KNOWN, SEED


def test_a_line_of_another_account_does_not_make_a_page_theirs() -> None:
    """Two accounts of one person may have nearly the same page."""
    edited = SEED.replace("- 用户希望", "- 另一账号也记了\n- 用户希望")
    ours, theirs = PageBase(SEED, {}), PageBase(edited, {})
    assert not is_of_other_account(parse(edited), [ours], [theirs])
    assert is_of_other_account(parse(edited), [], [theirs])


class TestHand:
    base = PageBase(SEED, {1: "rec_1", 2: "rec_2"})

    def test_nothing_changed_is_nothing(self) -> None:
        assert diff_page([self.base], SEED.replace("\n\n", "\n\n\n"), DAY, KNOWN).changes == ()

    def test_an_edit_names_its_parts_a_deletion_its_record_an_addition_neither(self) -> None:
        edited = SEED.replace("用户希望", "他希望").replace("#design", "#设计")
        (edit,) = diff_page([self.base], edited, DAY, KNOWN).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts", "tags"))
        without = SEED[: SEED.index("\n---")]
        (removed,) = diff_page([self.base], without, DAY, KNOWN).changes
        assert (removed.record_id, removed.session) == ("rec_2", None)
        more = SEED + "\n---\n\n## Session 3 - 15:00:00\n\n### 主题\n手写\n"
        (added,) = diff_page([self.base], more, DAY, KNOWN).changes
        assert added.record_id is None
        assert added.session is not None
        assert added.session.content.topic == "手写"

    def test_marks_are_written_and_taken_away(self) -> None:
        (marked,) = diff_page([self.base], SEED + "\n### 标记\n重要、过时\n", DAY, KNOWN).changes
        assert marked.marks == (("important", True), ("outdated", True))

    def test_the_nearest_version_is_the_base(self) -> None:
        """A killed writer leaves an older page than its checkpoint: that is no manual edit."""
        newer = PageBase(SEED.replace("重构", "重构二"), self.base.record_ids)
        assert diff_page([newer, self.base], SEED, DAY, KNOWN).changes == ()

    def test_what_a_page_that_was_never_written_has_was_not_deleted(self) -> None:
        """Session 1 was taken away by hand; a page with a new one was noted, and the disk failed."""
        first = SEED[: SEED.index("\n---")]
        never = PageBase(SEED[: SEED.index("## Session 1")] + SEED[SEED.index("## Session 2") :], {2: "rec_2"})
        emptied = SEED[: SEED.index("## Session 1")]
        (told,) = diff_page([never, PageBase(first, {1: "rec_1"})], emptied, DAY, ("rec_2",)).changes
        assert told.record_id == "rec_1"

    def test_an_addition_that_has_its_record_already_is_compared_as_it_was_begun(self) -> None:
        """The import was killed before it was confirmed."""
        more = SEED + "\n---\n\n## Session 3 - 15:00:00\n\n### 主题\n手写\n"
        begun = PageBase(more, {3: "rec_3"})
        told = diff_page([self.base], more, DAY, KNOWN, begun)
        assert (told.changes, dict(told.record_ids)) == ((), {1: "rec_1", 2: "rec_2", 3: "rec_3"})
        (edit,) = diff_page([self.base], more.replace("手写", "改过"), DAY, KNOWN, begun).changes
        assert (edit.record_id, edit.parts) == ("rec_3", ("topic",))
        (removed,) = diff_page([self.base], SEED, DAY, KNOWN, begun).changes
        assert (removed.record_id, removed.session) == ("rec_3", None)

    def test_an_imported_edit_is_compared_as_it_was_begun_even_if_its_record_is_gone(self) -> None:
        edited = SEED.replace("用户希望", "他希望")
        begun = PageBase(edited, {1: "rec_1", 2: "rec_2"}, {1: "evt_1"})
        assert diff_page([self.base], edited, DAY, ("rec_2",), begun).changes == ()
        (edit,) = diff_page([self.base], edited.replace("他希望", "我希望"), DAY, KNOWN, begun).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts",))

    def test_an_edit_that_was_not_imported_is_an_edit_even_if_an_import_had_begun(self) -> None:
        edited = SEED.replace("用户希望", "他希望")
        (edit,) = diff_page([self.base], edited, DAY, KNOWN, PageBase(edited, {2: "rec_2"})).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts",))

    @pytest.mark.parametrize("wrong", [SEED.replace("14:20", "14:21"), SEED.replace(DAY, "2026-01-30")])
    def test_an_edit_of_time_or_project_is_refused(self, wrong: str) -> None:
        with pytest.raises(InvalidInput):
            diff_page([self.base], wrong, DAY, KNOWN)
