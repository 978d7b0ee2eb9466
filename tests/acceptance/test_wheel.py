"""What is shipped is the wheel: alone, in an environment of its own and outside the repository, it is the program."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.sidecar import REPOSITORY, Home, Sidecar

PACKAGES = ("sync", "bridge")
IN_PROCESS = "import sync, bridge; print(sync.__file__, bridge.__file__)"


def run(*command: str | Path, folder: Path, home: Home | None = None) -> str:
    environment = None if home is None else home.environment
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q")
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", folder, REPOSITORY, folder=folder)
    [built] = folder.glob("*.whl")
    return built


def test_every_file_of_the_program_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    there = {
        path.relative_to(REPOSITORY).as_posix()
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert names == there
    assert [name for name in names if name.endswith(".sql")]


def test_installed_alone_it_examines_itself_remembers_and_answers(wheel: Path, tmp_path: Path) -> None:
    """The dependencies are those of this environment, by a path; what is installed in it as editable is not reached."""
    place, outside = tmp_path / "environment", tmp_path / "outside"
    venv.create(place, with_pip=False)
    python, program = place / "bin" / "python", place / "bin" / "xiaobai-memory"
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "-q")
    run(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel, folder=tmp_path)
    [installed] = place.glob("lib/python*/site-packages")
    for entry in sys.path:
        if entry.endswith("site-packages"):
            (installed / "dependencies.pth").write_text(f"{entry}\n")
    outside.mkdir()
    home = Home(outside)
    places = run(python, "-c", IN_PROCESS, folder=outside, home=home).split()
    assert all(Path(found).is_relative_to(installed) for found in places), places
    assert json.loads(run(program, "--json", "doctor", folder=outside, home=home))
    with Sidecar(home, command=[str(program), "serve"]) as sidecar:
        sidecar.update("装在别处", "好的")
        assert "装在别处" in sidecar.load()["document"]
    assert json.loads(run(program, "--json", "events", "verify", folder=outside, home=home))["ok"] is True
