"""The language of a command: of its settings, of the memory file, of the shell."""

from pathlib import Path

import pytest

from bridge.api.command_language import command_language
from sync.document.markdown.template import empty_document
from sync.texts.language import EN, ZH, Language

OWN_TITLE = "# Notes\n\n## 用户偏好\n\n- 四个空格\n".encode()


@pytest.mark.parametrize(
    ("environment", "config", "file", "language"),
    [
        ({}, "", None, ZH),
        ({"LANG": "en_US.UTF-8"}, "", None, EN),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "", None, ZH),
        ({"LANG": "en_US.UTF-8"}, "", empty_document("", ZH), ZH),
        ({"LANG": "zh_CN.UTF-8"}, "", empty_document("", EN), EN),
        ({"LANG": "en_US.UTF-8"}, "", OWN_TITLE, ZH),
        ({"LANG": "en_US.UTF-8"}, "", b"\xff\x00", EN),
        ({}, '[document]\nlanguage = "en"\n', empty_document("", ZH), EN),
        ({"XIAOBAI_DOCUMENT__LANGUAGE": "zh"}, '[document]\nlanguage = "en"\n', empty_document("", EN), ZH),
        ({"XIAOBAI_DOCUMENT__LANGUAGE": "klingon", "LANG": "en_US.UTF-8"}, "", None, EN),
        ({"LANG": "en_US.UTF-8"}, "not toml [", empty_document("", ZH), ZH),
    ],
)
def test_settings_come_before_the_file_and_the_file_before_the_shell(
    tmp_path: Path, environment: dict[str, str], config: str, file: bytes | None, language: Language
) -> None:
    (tmp_path / "config.toml").write_text(config, "utf-8")
    if file is not None:
        (tmp_path / "memory.md").write_bytes(file)
    flags = {"data_dir": str(tmp_path), "memory_file": str(tmp_path / "memory.md")}
    assert command_language(flags, environment) is language
