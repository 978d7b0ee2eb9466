"""Which key a device registers with: its own, a new one as a copy, none for a former id."""

import shutil
from pathlib import Path

import pytest

from sync.errors import DeviceConflict, DeviceRevoked
from tests.fake_cloud.server import FakeServer
from tests.support import Device, FixedClock, device_key_in, new_server, open_device, run_in_virtual_time

USER = "user-1"


def keys(server: FakeServer) -> dict[str, str | None]:
    return {device_id: device.public_key for device_id, device in server.user_logs[USER].devices.items()}


async def asked_once(device: Device, *words: str) -> None:
    await device.record_notes(*words)
    await device.replicator.sync_now()


async def test_a_device_keeps_its_key_and_a_copy_that_becomes_a_new_replica_makes_its_own(tmp_path: Path) -> None:
    server = new_server()
    async with open_device(tmp_path / "a", server, with_device_key=True) as device:
        await device.log_in()
        await asked_once(device, "一")
        original = keys(server)["device-a"]
        await asked_once(device, "二")
        session = device.tokens.session
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    async with open_device(tmp_path / "a", server, with_device_key=True, clock=FixedClock(seed=3)) as device:
        device.tokens.session = session
        await asked_once(device, "原件之后")
        assert keys(server) == {"device-a": original}
    async with open_device(tmp_path / "copy", server, with_device_key=True, clock=FixedClock(seed=4)) as copy:
        copy.tokens.session = session
        await asked_once(copy, "复件之后")
        renewed = keys(server)["device-a"]
        assert renewed not in {None, original}
        assert len(server.user_logs[USER].events) == 4
    assert (tmp_path / "a" / "device-key").read_bytes() != (tmp_path / "copy" / "device-key").read_bytes()


async def test_a_device_that_lost_its_database_and_not_its_key_is_itself_again_at_once(tmp_path: Path) -> None:
    server = new_server()
    async with open_device(tmp_path / "a", server, with_device_key=True) as device:
        await device.log_in()
        await asked_once(device, "一")
        former = device.replica_id
    for lost in (tmp_path / "a").glob("memory.db*"):
        lost.unlink()
    key = tmp_path / "a" / "device-key"
    kept = key.read_bytes()
    key.unlink()  # a start of the program would see by it that the database is lost, and make a new one first
    async with open_device(tmp_path / "a", server, with_device_key=True, clock=FixedClock(seed=5)) as device:
        key.write_bytes(kept)
        await device.log_in()
        await asked_once(device, "二")
        assert server.user_logs[USER].devices["device-a"].replica_id == device.replica_id != former
        assert len(server.user_logs[USER].events) == 2


async def test_an_installation_with_another_key_takes_no_device_over(tmp_path: Path) -> None:
    server = new_server()
    async with open_device(tmp_path / "a", server, with_device_key=True) as device:
        await device.log_in()
        await asked_once(device, "一")
    async with open_device(tmp_path / "b", server, with_device_key=True, clock=FixedClock(seed=5)) as other:
        await other.log_in()
        with pytest.raises(DeviceConflict):
            await asked_once(other, "二")


async def test_events_of_an_earlier_id_go_out_without_taking_the_new_ids_key_along(tmp_path: Path) -> None:
    server = new_server()
    async with open_device(tmp_path, server, with_device_key=True) as device:
        await device.log_in()
        await asked_once(device, "一")
        old = keys(server)["device-a"]
        await device.record_notes("还是旧名")
        device.log.device_id = "device-a2"
        await asked_once(device, "新名")
        assert keys(server)["device-a"] == old
        assert keys(server)["device-a2"] not in {None, old}
        before = keys(server)
        device.log.device_id = "device-a"
        await device.record_notes("旧名下还有一条")
        device.log.device_id = "device-a2"
        device.replicator._runner.reset_registration()  # as a start does
        await device.replicator.sync_now()
        assert keys(server) == before
        assert await device_key_in(tmp_path).public_key() == before["device-a2"]


async def test_a_revoked_key_is_not_replaced_by_itself(tmp_path: Path) -> None:
    """A revoked device must not return under another id by itself."""
    server = new_server()
    async with open_device(tmp_path, server, with_device_key=True) as device:
        await device.log_in()
        await asked_once(device, "一")
        kept = (tmp_path / "device-key").read_bytes()
        server.user_logs[USER].devices["device-a"].revoked_at = 1.0
        device.log.device_id = "device-a2"
        with pytest.raises(DeviceRevoked):
            await asked_once(device, "二")
        assert set(keys(server)) == {"device-a"}
        assert (tmp_path / "device-key").read_bytes() == kept


def test_a_revoked_device_that_is_asked_for_news_all_the_time_makes_no_storm(tmp_path: Path) -> None:
    async def main() -> int:
        server = new_server()
        async with open_device(tmp_path, server, single_threaded=True, with_device_key=True) as device:
            await device.log_in()
            await asked_once(device, "一")
            server.user_logs[USER].devices["device-a"].revoked_at = 1.0
            with pytest.raises(DeviceRevoked):
                await device.replicator.sync_now()
            before = len(device.cloud.calls)
            for _ in range(100):
                with pytest.raises(DeviceRevoked):
                    await device.replicator.sync_unless_backing_off()
            return len(device.cloud.calls) - before

    assert run_in_virtual_time(main()) == 0
