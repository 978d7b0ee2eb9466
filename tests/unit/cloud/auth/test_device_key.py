"""The key of an installation: created once, private, and never imported by a start."""

import asyncio
import base64
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sync.cloud.auth.device_key import DeviceKey
from sync.log.devices.signing import ALGORITHM_PREFIX
from sync.system.secret_store import FileSecretStore
from tests.fake_cloud.devices import PUBLIC_KEY
from tests.support import REPOSITORY, device_key_in


async def test_a_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    public = await device_key_in(tmp_path).public_key()
    assert PUBLIC_KEY.fullmatch(public)
    assert await device_key_in(tmp_path).public_key() == public
    kept = tmp_path / "device-key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert public.encode() not in kept.read_bytes()
    seed = base64.b64decode(kept.read_text().removeprefix(ALGORITHM_PREFIX))
    half = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    assert base64.b64encode(half).decode() == public.removeprefix(ALGORITHM_PREFIX)


async def test_two_installations_have_two_keys_and_a_renewed_one_is_another(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first = await device_key_in(one).public_key()
    assert await device_key_in(two).public_key() != first
    second = await device_key_in(one).rotate()
    assert second != first
    assert await device_key_in(one).public_key() == second


async def test_a_key_that_was_renewed_elsewhere_is_noticed_after_a_minute(tmp_path: Path) -> None:
    key = device_key_in(tmp_path)
    first = await key.recent_public_key()
    second = await device_key_in(tmp_path).rotate()
    assert await key.recent_public_key() == first, "not read at each connection"
    key._recent = (first, float("-inf"))
    assert await key.recent_public_key() == second
    third = await key.rotate()
    assert await key.recent_public_key() == third


async def test_a_key_that_was_read_before_it_was_renewed_is_not_remembered(tmp_path: Path) -> None:
    has_read, may_go_on = threading.Event(), threading.Event()

    class SlowStore(FileSecretStore):
        def load(self) -> bytes | None:
            stored = super().load()
            has_read.set()
            may_go_on.wait()
            return stored

    await device_key_in(tmp_path).public_key()
    key = DeviceKey(lambda: SlowStore(tmp_path / "device-key"), lock=tmp_path / "device-key.lock")
    reading = asyncio.create_task(key.recent_public_key())
    await asyncio.to_thread(has_read.wait)
    renewed = await key.rotate()
    may_go_on.set()
    assert await reading != renewed
    assert await key.recent_public_key() == renewed


@pytest.mark.parametrize("damaged", [b"", b"ed25519:", b"ed25519:AAAA", b"ed25519:!!", b"rsa:" + b"A" * 44, b"\xff"])
async def test_a_damaged_key_is_no_key_and_another_is_made(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "device-key").write_bytes(damaged)
    public = await device_key_in(tmp_path).public_key()
    assert PUBLIC_KEY.fullmatch(public)
    assert await device_key_in(tmp_path).public_key() == public


def test_many_that_come_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: device_key_in(tmp_path)._load_or_create(rotate=False), range(8)))
    assert len(keys) == 1
    assert (tmp_path / "device-key.lock").stat().st_mode & 0o077 == 0


def test_a_start_does_not_pay_for_cryptography() -> None:
    code = (
        "import sys, sync.open_app, bridge.methods.registry;"
        "print([m for m in sys.modules if m.startswith('cryptography')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
