"""Names that want out of their folder, wherever an id or a setting becomes a path.

An audit hook of the interpreter sees every path that is opened, made, renamed or removed, whoever does it: nothing but
what lies below the root may be written, and nothing of the neighbour's may be read.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sync.accounts.profiles import create_profile_folder, open_installation, remove_profile
from sync.errors import SettingsError, StorageCorrupt, StorageError
from sync.settings.settings import Settings
from sync.system.atomic_swap import compare_and_swap
from sync.system.files import read_once
from tests.fuzz.campaign import Campaign, FuzzCases
from tests.fuzz.rpc.framing import CheckedConnection, in_memory

SECRET: Final = "words of somebody else"
GOOD: Final = "0123456789abcdef"
NAMES: Final = (
    "..", "../..", "../outside", "../outside/secret", "../../../../../../../../etc/passwd", "/etc/passwd",
    "//etc/passwd", "./../outside/secret", "a/../../outside/secret", "..\\outside\\secret", "..%2foutside%2fsecret",
    "%2e%2e/outside", "....//outside", "..;/outside", "..\u2215outside\u2215secret", "\uff0e\uff0e\uff0foutside",
    "．．/outside/secret", "\\\\server\\share\\secret", "//server/share/secret", "\\\\?\\C:\\secret",
    "\\\\.\\PhysicalDrive0", "C:\\secret", "C:secret", "file:///etc/passwd", "file:../outside/secret?mode=rwc",
    "secret::$DATA", "secret:stream", "CON", "con.txt", "NUL", "PRN", "AUX", "COM1", "LPT9.md", "CONIN$", "CLOCK$",
    "secret.", "secret ", " secret", "secret...", ".", "", " ", "~", "~root", "~/secret", "$HOME/secret", "${HOME}",
    "%USERPROFILE%", "`id`", "$(id)", "; rm -rf /", "| cat", "-rf", "--help", "a\0b", "..\0", "a\nb", "a\rb", "a\tb",
    "\x1b[2J", "\u202e..", "a\u200b/..", "ａｂｃ", "０１２３４５６７８９ａｂｃｄｅｆ", "0123456789ABCDEF",
    "0123456789abcdef\n", "0123456789abcdef/", "0123456789abcdef/../../outside", "x" * 256, "x" * 5000, "记" * 100,
    "a" * 16, "e\u0301" * 8, "*", "?", "[a-z]", "a|b", 'a"b', "a<b>", "/dev/zero", "/dev/full", "/proc/self/mem",
    "link/secret", "link", "pipe", "folder",
)  # fmt: skip
WRITING: Final = frozenset(
    {
        "os.mkdir",
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.chmod",
        "os.link",
        "os.symlink",
        "os.truncate",
        "shutil.rmtree",
    }
)
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_ears: list[Callable[[str, tuple[Any, ...]], None]] = []


def _audit_hook(event: str, arguments: tuple[Any, ...]) -> None:
    for ear in _ears:
        ear(event, arguments)


sys.addaudithook(_audit_hook)  # for as long as the process lives; it asks an empty list then


class PathSandbox:
    """A root with the program's own folder in it, and a neighbour's folder beside the root."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.data = self.root / "data"
        self.outside = folder / "outside"
        self.data.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "secret").write_text(SECRET)
        (self.root / "folder").mkdir()
        (self.root / "link").symlink_to(self.outside)
        os.mkfifo(self.root / "pipe")

    def reset(self) -> None:
        """An installation as it was on its first day."""
        told = {"profile": GOOD, "device_id": "device-a"}
        (self.data / "installation.json").write_text(json.dumps(told))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Whatever happens in here stays in the root and leaves the neighbour alone."""
        wrong: list[str] = []
        outside, root = os.path.realpath(self.outside), os.path.realpath(self.root)

        def ear(event: str, arguments: tuple[Any, ...]) -> None:
            for path in _paths_of(event, arguments):
                real = os.path.realpath(path)
                writes = event in WRITING or (event == "open" and bool(arguments[2] & _WRITE_FLAGS))
                if real.startswith(outside) or (writes and not real.startswith((root, "/dev/"))):
                    wrong.append(f"{event} {path!r}")

        _ears.append(ear)
        try:
            yield
        finally:
            _ears.remove(ear)
        assert not wrong, wrong
        assert [path.name for path in self.outside.iterdir()] == ["secret"]
        assert (self.outside / "secret").read_text() == SECRET


def _paths_of(event: str, arguments: tuple[Any, ...]) -> list[str]:
    if event == "sqlite3.connect":
        return [str(arguments[0]).removeprefix("file:").partition("?")[0]]
    if event != "open" and event not in WRITING:
        return []
    named = arguments[:2] if event in {"os.rename", "os.link", "os.symlink"} else arguments[:1]
    return [os.fsdecode(path) for path in named if isinstance(path, str | bytes | os.PathLike)]


# --- places --------------------------------------------------------------------------------------------------


def _attack_installation_field(field: str) -> Callable[[PathSandbox, str], None]:
    def attack(world: PathSandbox, name: str) -> None:
        """A damaged or forged `installation.json`."""
        told = {"profile": GOOD, "device_id": "device-a", field: name}
        (world.data / "installation.json").write_text(json.dumps(told))
        with suppress(StorageCorrupt):
            create_profile_folder(world.data, open_installation(world.data, lambda: None))

    return attack


def _attack_removal(world: PathSandbox, name: str) -> None:
    with suppress(StorageCorrupt):
        remove_profile(world.data, name)


def _attack_setting(field: str) -> Callable[[PathSandbox, str], None]:
    def attack(world: PathSandbox, name: str) -> None:
        """A setting may name any file of the user's; one that cannot be is named, and nothing hangs on it."""
        given: dict[str, Any] = {"data_dir": str(world.data), "memory_file": str(world.root / "memory.md")}
        given[field] = name if name.startswith(("/", "~")) else f"{world.root}/{name}"
        if "outside" in name or name.startswith("link"):
            return  # the user's own choice
        with suppress(SettingsError, StorageError):
            settings = Settings.from_sources(**given)
            found = read_once(settings.memory_file)
            if settings.memory_file.parent == world.root and field == "memory_file":
                compare_and_swap(settings.memory_file, found.sha256 if found else None, b"# x\n")
                settings.memory_file.unlink()

    return attack


PLACES: Final[dict[str, Callable[[PathSandbox, str], None]]] = {
    **{
        f"installation.{field}": _attack_installation_field(field)
        for field in ("profile", "document_of", "removing", "former", "device_id")
    },
    "remove_profile": _attack_removal,
    **{f"setting {field}": _attack_setting(field) for field in ("memory_file", "data_dir", "app_db")},
}
CALLS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("initialize", "deviceId", {}),
    ("memory/update", "projectPath", {"userMessage": "问", "aiResponse": "答"}),
    ("memory/update", "sessionId", {"userMessage": "问", "aiResponse": "答"}),
    ("memory/update", "idempotencyKey", {"userMessage": "问", "aiResponse": "答"}),
    ("memory/restore", "sha256", {}),
    ("watermarks/set", "name", {"position": 1}),
    ("devices/hide", "deviceId", {}),
    ("devices/rename", "deviceId", {"name": "x"}),
    ("events/append", "event", {}),
)


async def attack_paths(cases: FuzzCases, folder: Path) -> None:
    """Every name in every place; a case is one of the pairs."""
    pairs = [(place, name) for place in PLACES for name in NAMES]
    world = PathSandbox(folder)
    for case in cases:
        place, name = pairs[case.number % len(pairs)]
        world.reset()
        with world.watched():
            PLACES[place](world, name)


async def attack_ids(cases: FuzzCases, folder: Path) -> None:
    """The same names as ids of calls, with a real application behind them."""
    world = PathSandbox(folder)
    with world.watched():
        async with in_memory(world.root) as line:
            for case in cases:
                method, field, others = CALLS[case.number % len(CALLS)]
                name = NAMES[case.number // len(CALLS) % len(NAMES)]
                await _call(line, method, {**others, field: name})


async def _call(line: CheckedConnection, method: str, params: dict[str, Any]) -> None:
    if "event" in params:
        name = params["event"]
        params = {"event": {"type": name, "event_id": name, "project_path": name, "session_id": name, "payload": {}}}
    answer = await line.answer_to(method, **params)
    assert SECRET not in json.dumps(answer)
    assert answer.get("error", {}).get("code") != -32603, answer


PATHS: Final = Campaign("paths", len(PLACES) * len(NAMES), 240, attack_paths)
IDS: Final = Campaign("ids", len(CALLS) * len(NAMES), 60, attack_ids)
