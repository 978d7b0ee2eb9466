"""The texts around remembered text are the same in both languages, but for their words."""

import re

import msgspec

from sync.log.authorship import UNPROVEN, Author
from sync.log.model import Door
from sync.texts.language import EN, ZH
from sync.texts.prompts import PROMPTS


def test_both_languages_have_the_same_fields_to_fill() -> None:
    one, other = (msgspec.structs.asdict(PROMPTS[language]) for language in (ZH, EN))
    for name, text in one.items():
        assert re.findall(r"{\w*}", str(text)) == re.findall(r"{\w*}", str(other[name])), name
    assert PROMPTS[ZH].authors.keys() == PROMPTS[EN].authors.keys()


def test_every_author_has_a_word() -> None:
    assert {*Author, Door.PROJECT, Door.TEAM, Door.CLOUD, UNPROVEN} <= PROMPTS[ZH].authors.keys()
