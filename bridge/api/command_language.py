"""The language in which a command answers: that of its settings, of the memory file, or of the shell.

Read without opening the application, and only for a sentence that is printed.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sync.document.markdown.words import WORDS
from sync.errors import XiaobaiError
from sync.settings.data_dir import ENV_PREFIX, named_data_dir, read_config_file, resolve_flag_path
from sync.settings.values import decode_path
from sync.texts.language import EN, ZH, Language, choose_language, environment_locale

HEAD_BYTES: Final = 1 << 16  # of the memory file: its first heading is there


def command_language(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Language:
    """The language of a command with these flags. Settings and files that cannot be read decide nothing."""
    named = {name.upper(): value for name, value in environment.items()}
    config: dict[str, Any] = {}
    with suppress(XiaobaiError):
        config = read_config_file(named_data_dir(flags.get("data_dir"), environment))
    section = config.get("document")
    in_file = section.get("language") if isinstance(section, dict) else None
    setting = named.get(f"{ENV_PREFIX}DOCUMENT__LANGUAGE", in_file)
    if setting in {ZH, EN}:
        return Language(setting)
    flag = resolve_flag_path(flags.get("memory_file"))
    path = flag or named.get(f"{ENV_PREFIX}MEMORY_FILE") or config.get("memory_file")
    return choose_language("auto", _language_of_file(path), environment_locale(environment))


def _language_of_file(path: object) -> Language | None:
    try:
        file = Path.home() / "xiaobai-ai-memory.md" if path is None else decode_path(path)
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
    except (OSError, ValueError, RuntimeError):
        return None
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip().decode(errors="replace")
    titled = next((language for language, words in WORDS.items() if first == f"# {words.title}"), None)
    return titled or _language_of_content(head)


def _language_of_content(head: bytes) -> Language | None:
    from sync.document.markdown.parse import parse  # noqa: PLC0415 - most files begin with their title
    from sync.document.markdown.template import language_of  # noqa: PLC0415 - as above

    with suppress(XiaobaiError):
        return language_of(parse(head[: head.rfind(b"\n") + 1] if len(head) == HEAD_BYTES else head))
    return None
