"""What the documents tell a reader to do can be done, and what they say of the code is so."""

import re
from pathlib import Path
from typing import Final

import pytest

from sync.vault.access import INSTALL

REPOSITORY: Final = Path(__file__).parents[2]
READMES: Final = ("README.md", "README.zh-CN.md")


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


@pytest.mark.parametrize("told", [*map(text_of, READMES), INSTALL], ids=[*READMES, "hint"])
def test_extras_are_installed_from_the_sources_for_the_project_is_on_no_index(told: str) -> None:
    extras = re.findall(r"pip install '([^']*)\[(?:embeddings|encryption)\]'", told)
    assert set(extras) == {"."}
