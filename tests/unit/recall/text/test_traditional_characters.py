"""The committed table of traditional characters."""

from sync.recall.text.tokenizer import normalise
from sync.recall.text.traditional_characters import SIMPLIFIED
from tests.unit.recall.text.generate_traditional_characters import TABLE, generate


def test_the_table_is_what_the_installed_opencc_generates() -> None:
    assert TABLE.read_text("utf-8") == generate()


def test_no_simplified_form_is_itself_replaced() -> None:
    assert not SIMPLIFIED.keys() & set(SIMPLIFIED.values())


def test_every_traditional_character_is_searched_in_its_simplified_form() -> None:
    assert normalise("重慶火鍋與豆漿") == "重庆火锅与豆浆"
