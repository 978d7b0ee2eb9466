"""The two languages, and the one order in which the language of a sentence is chosen.

The setting `DOCUMENT__LANGUAGE`, else that of the memory file, else the locale of the app (`initialize`), else that of
the environment, else Chinese.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

LanguageSetting = Literal["auto", "zh", "en"]
_NO_LOCALE: Final = frozenset({"", "c", "posix"})  # locales that name no language


class Language(StrEnum):
    ZH = "zh"
    EN = "en"


ZH: Final = Language.ZH
EN: Final = Language.EN


def parse_language(value: object) -> Language:
    """The language that an event names; Chinese if it names none."""
    return EN if value == EN else ZH


def language_of_locale(locale: str | None) -> Language | None:
    """``zh-CN`` and ``zh_TW.UTF-8`` are Chinese, ``C.UTF-8`` and nothing are unknown, all others get English."""
    name = (locale or "").partition(".")[0].replace("-", "_").casefold()
    if name in _NO_LOCALE:
        return None
    return ZH if name.partition("_")[0] == "zh" else EN


def environment_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    """The locale of messages in the environment of a process; None if it sets none."""
    return next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), None)


def choose_language(setting: LanguageSetting, document_language: Language | None, locale: str | None) -> Language:
    """The language by the order of this module. `locale`: the app's, else that of the environment."""
    if setting != "auto":
        return Language(setting)
    return document_language or language_of_locale(locale) or ZH


class LanguageChoice(msgspec.Struct):
    """The language of what the program writes. `locale`: the app's, else that of the environment.

    `version`: the number of the newest version of the document that was noted, 0 if none was.
    """

    setting: LanguageSetting = "auto"
    locale: str | None = None
    version: int = 0
    _document_language: Language | None = None

    @property
    def current(self) -> Language:
        """The language for the document that was noted last."""
        return self.of(self._document_language)

    def note(self, version: int, language: Language | None) -> None:
        """Note the language of a version of the document."""
        self.version, self._document_language = version, language

    def of(self, document_language: Language | None) -> Language:
        """The language for a document whose own language is this; None if there is no document yet."""
        return choose_language(self.setting, document_language, self.locale)
