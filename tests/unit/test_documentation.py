"""What the documents tell a reader to do can be done, and what they say of the code is so."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from bridge.cli.memory.document import resolve
from sync.cloud.auth.session_storage import NO_KEYCHAIN_WARNING
from sync.document.surfaces.notices import Notice
from sync.encryption.driver import INSTALL_HINT
from sync.errors import NotSynced

REPOSITORY: Final = Path(__file__).parents[2]
READMES: Final = ("README.md", "README.zh-CN.md")


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


@pytest.mark.parametrize("told", [*map(text_of, READMES), INSTALL_HINT], ids=[*READMES, "hint"])
def test_extras_are_installed_from_the_sources_for_the_project_is_on_no_index(told: str) -> None:
    extras = re.findall(r"pip install '([^']*)\[(?:embeddings|encryption)\]'", told)
    assert set(extras) == {"."}


def test_every_warning_of_status_is_explained() -> None:
    explained = set(re.findall(r"(?m)^\| `(\w+)` \|", text_of("README.md").partition("Warnings in `status`:")[2]))
    words = {NO_KEYCHAIN_WARNING.partition(":")[0], *Notice}
    words |= {"documents_parked", "storage_read_only", "encryption_waits", "database_salvaged"}
    assert words <= explained


def test_a_way_out_that_needs_a_word_is_named_with_it() -> None:
    assert "--even-unsent" in NotSynced.default_hint
    assert Notice.CLOUD_MASS_DELETE in (resolve.__doc__ or "")
    for name in READMES:
        assert "--even-unsent" in text_of(name)
        assert "{{ .Token }}" in text_of(name)  # without it a project sends links by e-mail, and no codes
    assert all(word in text_of("README.md") for word in ("allowLoss", "--accept", "evenUnsent"))


def test_the_arrows_of_the_readme_are_those_that_the_linter_holds() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    drawn = text_of("README.md").partition("and a linter holds the arrows:")[2].split("```")[1]
    assert drawn.split() == " → ".join(layers).split()
