"""Numbers of records and of pages."""

from sync.daily.pages.numbering import next_number, page_numbers
from tests.unit.daily.examples import DAY, record


class TestNumbers:
    """On a page; places are named after their projects here, `None` for the home."""

    def test_a_number_is_kept_and_the_next_goes_behind_all_that_were_given(self) -> None:
        every = [record(1), record(2), record(7), record(3)]
        assert list(page_numbers(every, str).values()) == [1, 2, 7, 3]
        assert next_number(every, str, None, DAY) == 8
        assert next_number(every, str, None, "2026-01-30") == 1
        assert next_number(every, str, "/家", DAY) == 1

    def test_of_two_with_one_number_the_first_keeps_it_and_nothing_made_later_moves_the_other(self) -> None:
        every = [record(1), record(2), record(1, record_id="rec_late")]
        assert page_numbers(every, str)["rec_late"] == 3
        for _ in range(5):
            made = next_number(every, str, None, DAY)
            every.append(record(made, record_id=f"rec_made_{made}"))
            assert page_numbers(every, str)["rec_late"] == 3
        assert [*page_numbers(every, str).values()] == [1, 2, 3, 4, 5, 6, 7, 8]

    def test_what_did_not_know_of_the_other_keeps_its_number_too(self) -> None:
        """A third device continued after the second record, before it received the one between."""
        every = [record(1), record(2), record(1, record_id="rec_late"), record(3)]
        assert [*page_numbers(every, str).values()] == [1, 2, 4, 3]

    def test_days_and_places_count_apart(self) -> None:
        every = [record(1), record(1, day="2026-01-30"), record(1, record_id="rec_p", project_path="/家")]
        assert [*page_numbers(every, str).values()] == [1, 1, 1]
        assert page_numbers(every, lambda _: "the home")["rec_p"] == 2
