"""The documents agree with the code: warnings, settings, packages, links, and what a hint says."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from bridge.cli.memory.document import resolve
from sync.cloud.auth.session_storage import NO_KEYCHAIN_WARNING
from sync.document.surfaces.notices import Notice
from sync.encryption.driver import INSTALL_HINT
from sync.errors import NotSynced
from sync.settings.settings import Settings

REPOSITORY: Final = Path(__file__).parents[2]
READMES: Final = ("README.md", "README.zh-CN.md")
CHAPTERS: Final = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md"))
DOCUMENTS: Final = (*READMES, "CHANGELOG.md", *CHAPTERS)
EXTRA: Final = re.compile(r"pip install '([^']*)\[(?:embeddings|encryption)\]'")
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def anchors_of(document: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", text_of(document))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def setting_names(values: dict[str, Any], prefix: str = "") -> set[str]:
    names = set()
    for name, value in values.items():
        names |= setting_names(value, f"{prefix}{name}__") if isinstance(value, dict) else {f"{prefix}{name}".upper()}
    return names


def test_extras_are_installed_from_the_sources_because_the_project_is_on_no_index() -> None:
    texts = [*map(text_of, DOCUMENTS), INSTALL_HINT]
    assert {source for text in texts for source in EXTRA.findall(text)} == {"."}


def test_every_warning_of_status_is_explained() -> None:
    explained = set(re.findall(r"(?m)^\| `(\w+)` \|", text_of("docs/operations.md")))
    words = {NO_KEYCHAIN_WARNING.partition(":")[0], *Notice}
    words |= {
        "documents_parked",
        "removed_account_parked",
        "storage_read_only",
        "encryption_waits",
        "database_salvaged",
    }
    assert words <= explained


def test_every_setting_is_explained() -> None:
    explained = set(re.findall(r"`([A-Z_]+)`", text_of("docs/settings.md")))
    assert setting_names(Settings().to_display()) <= explained


def test_an_option_that_a_hint_needs_is_documented() -> None:
    assert "--even-unsent" in NotSynced.default_hint
    assert Notice.CLOUD_MASS_DELETE in (resolve.__doc__ or "")
    for name in READMES:
        assert "--even-unsent" in text_of(name)
        assert "{{ .Token }}" in text_of(name)  # without it a project sends links by e-mail, and no codes
    chapters = "".join(map(text_of, CHAPTERS))
    assert all(word in chapters for word in ("allowLoss", "--accept", "evenUnsent"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files_and_headings_that_exist(document: str) -> None:
    for link in LINK.findall(text_of(document)):
        path, _, anchor = link.partition("#")
        if re.match(r"https?:", link):
            continue
        target = (REPOSITORY / document).parent / path if path else REPOSITORY / document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(str(target.resolve().relative_to(REPOSITORY))), link


def test_the_folders_that_the_documents_name_exist() -> None:
    named = {
        name
        for document in ("README.md", "docs/development.md", "docs/glossary.md")
        for name in re.findall(r"\b(?:sync|bridge)/[\w/]+", text_of(document))
    }
    assert {
        name for name in named if not (REPOSITORY / name).exists() and not (REPOSITORY / f"{name}.py").exists()
    } == set()
