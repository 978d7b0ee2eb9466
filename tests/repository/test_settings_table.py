"""docs/settings.md: its table is the one that the model gives, and each setting has a description."""

from tests import settings_table


def test_the_chapter_is_up_to_date() -> None:
    text = settings_table.DOCUMENT.read_text("utf-8")
    assert settings_table.document(text) == text, "run `python -m tests.settings_table`"


def test_every_setting_has_a_description_and_values() -> None:
    for row in settings_table.table().splitlines()[2:]:
        assert all(cell.strip() for cell in row.strip("| ").split(" | ")), row
        assert len(row.strip("| ").split(" | ")) == 4, row
