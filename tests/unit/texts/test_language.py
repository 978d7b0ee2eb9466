"""Which language a new document has."""

import pytest

from sync.texts.language import (
    EN,
    ZH,
    Language,
    LanguageChoice,
    LanguageSetting,
    environment_locale,
    language_of_locale,
    parse_language,
)


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("zh-CN", ZH),
        ("zh_TW.UTF-8", ZH),
        ("ZH", ZH),
        ("en-US", EN),
        ("en_GB.UTF-8", EN),
        ("de-DE", EN),
        ("C", None),
        ("C.UTF-8", None),
        ("POSIX", None),
        ("", None),
        (None, None),
    ],
)
def test_a_locale_names_a_language(locale: str | None, language: Language | None) -> None:
    assert language_of_locale(locale) is language


def test_the_environment_is_read_in_the_order_of_posix() -> None:
    assert environment_locale({"LANG": "en_US.UTF-8", "LC_ALL": ""}) == "en_US.UTF-8"
    assert environment_locale({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}) == "zh_CN"
    assert environment_locale({"LANG": "en_US.UTF-8", "LC_ALL": "C"}) == "C"
    assert environment_locale({}) is None


@pytest.mark.parametrize(
    ("setting", "locale", "document", "language"),
    [
        ("auto", None, None, ZH),
        ("auto", "en-US", None, EN),
        ("auto", "en-US", ZH, ZH),
        ("auto", "zh-CN", EN, EN),
        ("zh", "en-US", EN, ZH),
        ("en", "zh-CN", None, EN),
    ],
)
def test_a_setting_comes_before_the_document_and_the_document_before_the_locale(
    setting: LanguageSetting, locale: str | None, document: Language | None, language: Language
) -> None:
    assert LanguageChoice(setting, locale).of(document) is language


@pytest.mark.parametrize("value", [None, "zh", "fr", 1])
def test_an_event_without_a_known_language_is_chinese(value: object) -> None:
    assert parse_language(value) is ZH
    assert parse_language("en") is EN
