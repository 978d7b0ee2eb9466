"""`make setup` creates what it needs, or names what a person has to install. Its tools are stand-ins."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[2]
READ: Final = ("requirements.lock", "requirements-embeddings.lock", "requirements-encryption.lock", "pyproject.toml")
# Asked for a virtual environment it makes one whose Python has everything, or refuses as Debian's does.
PYTHON: Final = """#!/bin/sh
[ "$2" = venv ] || exit 0
[ -e refuses ] && exit 1
for last; do :; done
rm -rf "$last"; mkdir -p "$last/bin"; printf '#!/bin/sh\\n' > "$last/bin/python"; chmod +x "$last/bin/python"
"""
NODE_PROJECTS: Final = ("tests/cloud", "tests/types")
WITHOUT_PIP: Final = '#!/bin/sh\necho "No module named pip" >&2\nexit 1\n'


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder as after a clone, with a virtual environment that lacks pip."""
    folder = tmp_path / "checkout"
    for project in NODE_PROJECTS:
        (folder / project).mkdir(parents=True)
    shutil.copytree(REPOSITORY / ".ci", folder / ".ci")
    for name in (*READ, *(f"{project}/package-lock.json" for project in NODE_PROJECTS)):
        (folder / name).write_text("some-package==1\n")
    executable(tmp_path / "tools" / "python3", PYTHON)
    for tool in ("node", "npm"):
        executable(tmp_path / "tools" / tool, "#!/bin/sh\n")
    executable(folder / ".venv" / "bin" / "python", WITHOUT_PIP)
    return folder


def set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    path = f"{checkout.parent / 'tools'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", ".ci/setup"],
        cwd=checkout,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_an_environment_without_pip_is_recreated(checkout: Path) -> None:
    done = set_up(checkout)
    assert (done.returncode, "No module named pip" in done.stderr) == (0, False), done.stderr
    assert (checkout / ".venv" / ".ready").exists()


def test_where_none_can_be_made_the_missing_package_is_named(checkout: Path) -> None:
    (checkout / "refuses").touch()
    refused = set_up(checkout)
    assert (refused.returncode, "python3-venv" in refused.stderr) == (1, True), refused.stderr
