"""The watcher on a real folder: it reports every edit, and recovers when the observer or the folder is gone."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sync.document.surfaces.watcher import Watcher
from sync.runtime.change_counter import ChangeCounter

SOON = 5.0  # seconds; a callback takes a millisecond


class Watched:
    """A watcher on a file, and the changes it has reported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.signal = ChangeCounter()
        self.watcher = Watcher(path, self.signal)

    async def says_look_after(self, act: Callable[[], object]) -> bool:
        """Whether it reports a change in time."""
        seen = self.signal.count
        act()
        try:
            await asyncio.wait_for(self.signal.wait_for_change(seen), SOON)
        except TimeoutError:
            return False
        return True


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    folder = tmp_path / "folder"
    folder.mkdir()
    found = Watched(folder / "memory.md")
    found.path.write_text("# memo\n")
    yield found
    found.watcher.stop()


def atomic_save(path: Path) -> None:
    beside = path.with_name("beside.tmp")
    beside.write_text("# new\n")
    beside.replace(path)


def swap_for_a_symlink(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


ACTS: list[Callable[[Path], object]] = [
    lambda path: path.write_text("# more\n"),
    atomic_save,
    lambda path: path.unlink(),
    lambda path: path.rename(path.with_name("elsewhere.md")),
    swap_for_a_symlink,
]


@pytest.mark.parametrize("act", ACTS, ids=["written", "replaced", "deleted", "renamed", "made a symlink"])
async def test_every_change_of_the_file_is_reported(watched: Watched, act: Callable[[Path], object]) -> None:
    watched.watcher.renew()
    assert await watched.says_look_after(lambda: act(watched.path))


async def test_reading_says_nothing_or_we_would_wake_ourselves(watched: Watched) -> None:
    watched.watcher.renew()
    other = watched.path.with_name("other.md")
    await asyncio.sleep(0)
    seen = watched.signal.count
    watched.path.read_bytes()
    list(watched.path.parent.iterdir())
    other.write_text("not ours")
    # Events arrive in order: when the write below is reported, the read above would have been reported before it.
    assert await watched.says_look_after(watched.path.unlink)
    assert watched.signal.count == seen + 1


async def test_a_new_watch_reports_a_change_first(watched: Watched) -> None:
    seen = watched.signal.count
    watched.watcher.renew()
    assert watched.signal.count > seen


async def test_renewing_a_working_watch_does_nothing(watched: Watched) -> None:
    watched.watcher.renew()
    seen = watched.signal.count
    for _ in range(5):
        watched.watcher.renew()
    assert watched.signal.count == seen


@pytest.mark.parametrize("turn", range(3))
async def test_a_folder_that_was_deleted_and_made_again_is_watched_again(watched: Watched, turn: int) -> None:
    """Often the new folder has the old one's inode, and only the dead watch shows the change."""
    watched.watcher.renew()
    assert await watched.says_look_after(lambda: shutil.rmtree(watched.path.parent))
    watched.path.parent.mkdir()
    assert await renewed(watched)
    assert await watched.says_look_after(lambda: watched.path.write_text("# again\n"))


async def test_a_folder_that_was_renamed_away_and_replaced_is_watched_again(watched: Watched) -> None:
    watched.watcher.renew()
    folder = watched.path.parent
    folder.rename(folder.with_name("old"))
    folder.mkdir()
    assert await renewed(watched)
    assert await watched.says_look_after(lambda: watched.path.write_text("# again\n"))


async def test_a_folder_that_comes_later_is_watched_then(watched: Watched) -> None:
    shutil.rmtree(watched.path.parent)
    watched.watcher.renew()
    assert not is_alive(watched)
    watched.path.parent.mkdir()
    assert await renewed(watched)
    assert is_alive(watched)
    assert await watched.says_look_after(lambda: watched.path.write_text("# new\n"))


async def test_a_dead_observer_is_replaced(watched: Watched) -> None:
    watched.watcher.renew()
    assert is_alive(watched)
    observer = watched.watcher._observer
    assert observer is not None
    observer.stop()
    observer.join(SOON)
    assert not is_alive(watched)
    watched.watcher.renew()
    assert is_alive(watched)
    assert await watched.says_look_after(lambda: watched.path.write_text("# more\n"))


@pytest.mark.parametrize("place", ["first", "second"], ids=["in the same folder", "in another folder"])
async def test_a_symlink_s_target_is_watched_too_also_after_it_was_swapped(
    watched: Watched, tmp_path: Path, place: str
) -> None:
    first, second = tmp_path / "first" / "a.md", tmp_path / place / "b.md"
    for target in (first, second):
        target.parent.mkdir(exist_ok=True)
        target.write_text("# target\n")
    watched.path.unlink()
    watched.path.symlink_to(first)
    watched.watcher.renew()
    assert await watched.says_look_after(lambda: first.write_text("# more\n"))
    watched.path.unlink()
    watched.path.symlink_to(second)
    assert await renewed(watched)
    assert await watched.says_look_after(lambda: second.write_text("# more\n"))


async def test_stopping_twice_and_renewing_after_it_are_allowed(watched: Watched) -> None:
    watched.watcher.renew()
    watched.watcher.stop()
    watched.watcher.stop()
    assert not is_alive(watched)
    watched.watcher.renew()
    assert await watched.says_look_after(lambda: watched.path.write_text("# more\n"))


def is_alive(watched: Watched) -> bool:
    return watched.watcher.alive


async def renewed(watched: Watched) -> bool:
    """Whether renewing starts a new watch, once it is known that the old one is blind."""
    deadline = asyncio.get_running_loop().time() + SOON
    while asyncio.get_running_loop().time() < deadline:
        before = watched.watcher._observer
        watched.watcher.renew()
        if watched.watcher._observer is not before:
            return True
        await asyncio.sleep(0.01)  # a pause between looks, not a wait for an effect
    return False
