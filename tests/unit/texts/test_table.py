"""Every sentence has two languages, and the same values in both."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sync.texts.language import EN, ZH
from sync.texts.table import chinese_texts, text, translated

PLACE = re.compile(r"\{(\w+)[^{}]*\}")
CHINESE = re.compile("[\u4e00-\u9fff]")
SENTENCES = sorted(chinese_texts())
SOURCES = [path for top in ("sync", "bridge") for path in sorted(Path(top).rglob("*.py"))]
SPOKEN = re.compile(r'\b(?:say|localized|echo_problem)\(\s*"((?:[^"\\]|\\.)*)"')


def values_of(english: str) -> dict[str, object]:
    return dict.fromkeys(PLACE.findall(english), 2)


@pytest.mark.parametrize("english", SENTENCES)
def test_a_sentence_is_complete_in_both_languages(english: str) -> None:
    chinese = chinese_texts()[english]
    assert english
    assert chinese
    assert not CHINESE.search(re.sub("记住这个|对话记忆", "", english))
    assert sorted(PLACE.findall(english)) == sorted(PLACE.findall(chinese))
    for language in (ZH, EN):
        assert "{" not in PLACE.sub("", text(english, language)) or "{D1" in english
        text(english, language, **values_of(english))


def test_what_a_command_says_is_in_the_table() -> None:
    assert not sorted(spoken for spoken in _spoken() if spoken.strip(" {}") and spoken not in chinese_texts())


def _spoken() -> Iterator[str]:
    for source in SOURCES:
        for found in SPOKEN.findall(source.read_text("utf-8")):
            yield found.encode().decode("unicode_escape").encode("latin-1").decode() if "\\" in found else found


def test_a_number_has_its_noun_in_the_right_form() -> None:
    assert text("{count:lesson|lessons} found", EN, count=1) == "1 lesson found"
    assert text("{count:lesson|lessons} found", EN, count=2) == "2 lessons found"
    assert text("{count:lesson|lessons} found", ZH, count=1) == "找到 1 条相关记忆"


def test_a_finished_sentence_is_found_with_the_values_in_it() -> None:
    assert translated("no permission for /tmp/{a}", ZH) == "没有 /tmp/{a} 的权限"
    assert translated("no notes", ZH) == "没有笔记"
    assert translated("no notes", EN) == "no notes"
    assert translated("something that no table has", ZH) == "something that no table has"
    assert translated("", ZH) == ""
