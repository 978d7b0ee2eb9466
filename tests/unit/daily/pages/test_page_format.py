"""The page of a day: written, read, divided, refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.daily.model import Code, normalised_content, parse_time
from sync.daily.pages.page_format import DayPage, PageSession, line_ranges, render, split_page
from sync.daily.pages.page_format import parse as parse_page
from sync.errors import InvalidInput, TooLarge
from sync.texts.language import Language
from tests.unit.daily.examples import DAY, FIRST, SEED

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


CONTENTS = st.builds(
    normalised_content,
    WORDS,
    st.lists(WORDS, max_size=4),
    st.lists(st.builds(Code, st.sampled_from(["", "py", "c++"]), st.text("ab`~#-\n 中", max_size=40)), max_size=3),
    st.lists(WORDS, max_size=4),
)


NOTES = st.lists(CONTENTS, min_size=1, max_size=4).map(
    lambda found: tuple(PageSession(at, "10:30:45", each) for at, each in enumerate(found, start=1))
)


class TestPage:
    def test_it_is_the_file_of_the_seed(self) -> None:
        page = DayPage(DAY, (PageSession(1, "10:30:45", FIRST), PageSession(2, "14:20:00", normalised_content("重构"))))
        assert render(page) == SEED
        assert parse_page(SEED) == page

    @given(NOTES, st.sampled_from(Language))
    def test_what_is_written_is_read_as_it_was(self, notes: tuple[PageSession, ...], language: Language) -> None:
        page = DayPage(DAY, notes, language)
        assert parse_page(render(page)) == page

    @given(NOTES, st.sampled_from(Language))
    def test_line_ranges_are_those_of_the_file(self, notes: tuple[PageSession, ...], language: Language) -> None:
        page = DayPage(DAY, notes, language)
        lines = render(page).split("\n")
        for number, (first, last) in line_ranges(page).items():
            assert lines[first - 1] == f"## Session {number} - 10:30:45"
            assert lines[last - 1].strip()
            assert last == len(lines) - 1 or lines[last : last + 3] == ["", "---", ""]

    @pytest.mark.parametrize(
        "wrong",
        [
            "",
            "# 别的标题\n",
            SEED + "\n---\n\n多余的一行\n",
            SEED.replace("### 标签", "### 备注"),
            SEED.replace("Session 2", "Session 1"),
            SEED.replace("14:20:00", "25:00:00"),
            SEED.replace("14:20:00", "1４:20:00"),
            SEED.replace("Session 2", "Session 2２"),
            SEED.replace("2026", "２０２６"),
            SEED.replace("}\n```", "}"),
            SEED.replace("#skill", "skill"),
            SEED.replace("### 主题\n重构", "### 关键信息\n- 无题"),
        ],
    )
    def test_what_no_record_can_hold_is_not_understood(self, wrong: str) -> None:
        with pytest.raises(InvalidInput):
            parse_page(wrong)

    @pytest.mark.parametrize("wrong", ["1０:30:45", "10:30:45\n", "24:00:00", "10:30"])
    def test_a_time_is_written_in_digits_that_everybody_reads(self, wrong: str) -> None:
        assert parse_time("10:30:45") == "10:30:45"
        with pytest.raises(InvalidInput):
            parse_time(wrong)

    def test_a_page_beyond_its_size_goes_on_in_another_and_no_session_is_divided(self) -> None:
        notes = tuple(PageSession(at, "10:00:00", normalised_content(f"题目 {at}", ["长" * 300])) for at in range(1, 8))
        pieces = split_page(DayPage(DAY, notes), 2_500)
        assert len(pieces) > 1
        assert tuple(note for piece in pieces for note in piece.sessions) == notes
        assert all(len(render(piece).encode()) <= 2_500 for piece in pieces)

    def test_a_record_beyond_its_size_is_refused(self) -> None:
        with pytest.raises(TooLarge):
            normalised_content("题目", [], [Code("", "x" * 20_000)])
