"""A stolen token of the account requests the erasure of everything: no text is erased without the user."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.environment import ServerRows, cloud_settings, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

EXCHANGES = 25


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "a", device="device-a", **cloud_settings(local_cloud))


@pytest.fixture
def thief(local_cloud: Cloud, user: User) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local_cloud.url, trust_env=False, timeout=30) as client:
        client.headers["apikey"] = local_cloud.publishable_key
        person = {"email": user.email, "password": user.password}
        token = client.post("/auth/v1/token?grant_type=password", json=person).raise_for_status().json()
        client.headers["authorization"] = f"Bearer {token['access_token']}"
        yield client


def call(thief: httpx.Client, function: str, **arguments: Any) -> Any:
    return thief.post(f"/rest/v1/rpc/ai_memory_{function}", json=arguments).raise_for_status().json()


def erase_everything(thief: httpx.Client, server: ServerRows) -> None:
    evil = {"p_device_id": "evil", "p_replica_id": "rep-evil"}
    call(thief, "register_device", **evil)
    request = {
        "schema_version": 1,
        "event_id": "evt_evil",
        "replica_seq": 1,
        "ts": "2026-01-08T15:49:12Z",
        "type": "payload_forgotten",
        "payload": {"event_ids": server.event_ids()},
        "hlc": "0193a5b2c3d4-0000",
        "origin": "user-typed",
    }
    call(thief, "sync", **evil, p_events=[request])


@pytest.mark.parametrize("answer", ["restore", "accept"])
def test_an_erasure_of_everything_waits_for_the_person_on_this_device(
    home: Home, user: User, server: ServerRows, thief: httpx.Client, answer: str
) -> None:
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        words = [unique_text("记住") for _ in range(EXCHANGES)]
        for word in words:
            sidecar.update(word)
        wait_until_synced(sidecar)
        assert len(server.event_ids()) == EXCHANGES
        erase_everything(thief, server)
        wait_until_synced(sidecar)
        sidecar.call_until("sync/status", lambda told: "mass_erasure_waits" in told["document"]["warnings"])
        assert all(word in sidecar.load()["document"] for word in words)
        later = unique_text("以后")
        sidecar.update(later)
        wait_until_synced(sidecar)
    with Sidecar(home) as sidecar:
        sidecar.call_until("sync/status", lambda told: "mass_erasure_waits" in told["document"]["warnings"])
        sidecar.call("memory/resolve", answer=answer)
        said = "mass_erasure_refused" if answer == "restore" else "mass_erasure_applied"
        assert said in sidecar.call("sync/status")["document"]["warnings"]
        kept = words if answer == "restore" else []
        wait_until(lambda: [word for word in words if word in home.file.read_text("utf-8")] == kept)
        assert later in home.file.read_text("utf-8")
