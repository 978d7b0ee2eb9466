"""User B sees nothing of user A through any interface; a profile belongs to one user for good."""

import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    events_of,
    unique_text,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar

TABLES = ["ai_memory", "ai_memory_events", "ai_memory_heads", "ai_memory_devices"]


@pytest.fixture
def secret() -> str:
    """Text that only Ann may see."""
    return unique_text("安的话")


@pytest.fixture
def ann_sidecar(tmp_path: Path, local_cloud: Cloud, ann: User, secret: str) -> Iterator[Sidecar]:
    """Ann's sidecar, with her words on the server."""
    home = Home(tmp_path / "ann", device="device-ann", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(ann.email, ann.password)
        sidecar.update(secret)
        wait_for_lines(home, secret)
        wait_until_synced(sidecar)
        yield sidecar


@pytest.fixture
def words_of_ann(ann_sidecar: Sidecar) -> None:
    """Ann's words on the server; her sidecar has left, so that nothing but a test changes them."""
    ann_sidecar.stop()


class Api:
    """PostgREST as a client without our program uses it."""

    def __init__(self, cloud: Cloud, user: User | None) -> None:
        self._client = httpx.Client(base_url=cloud.url, headers={"apikey": cloud.publishable_key}, trust_env=False)
        token = cloud.publishable_key
        if user is not None:
            answer = self._client.post(
                "/auth/v1/token?grant_type=password", json={"email": user.email, "password": user.password}
            )
            token = answer.raise_for_status().json()["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> httpx.Client:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def sync_of(device: str, **more: Any) -> dict[str, Any]:
    return {"p_device_id": device, "p_replica_id": "rep_of_somebody_else", **more}


class TestAnotherUser:
    @pytest.mark.usefixtures("words_of_ann")
    def test_reads_nothing_through_load_events_digest_status_or_sync(
        self, ben: User, tmp_path: Path, local_cloud: Cloud, secret: str
    ) -> None:
        home = Home(tmp_path / "ben", device="device-ben", **cloud_settings(local_cloud))
        with Sidecar(home) as ben_s:
            ben_s.log_in(ben.email, ben.password)
            ben_s.update("本的话")
            wait_until_synced(ben_s)
            assert ben_s.call("sync/now")["pulled"] == 0
            loaded = ben_s.load(waitMs=2000)
            assert loaded["source"] == "cloud"
            assert loaded["devices"] == []
            assert loaded["digest"] == ""
            answers = [
                loaded,
                ben_s.call("memory/systemPrompt"),
                events_of(ben_s),
                ben_s.call("events/tail"),
                ben_s.call("sync/status"),
            ]
            assert secret not in json.dumps(answers, ensure_ascii=False)
            assert "device-ann" not in json.dumps(answers)
            assert {event["device_id"] for event in events_of(ben_s)} == {"device-ben"}
        assert secret not in home.file.read_text("utf-8")

    @pytest.mark.usefixtures("words_of_ann")
    def test_with_the_same_device_id_is_still_another_user(
        self, ann: User, ben: User, tmp_path: Path, local_cloud: Cloud, secret: str
    ) -> None:
        """Two accounts on one machine: the hardware, and so the device id, is the same."""
        with Sidecar(Home(tmp_path / "ben", device="device-ann", **cloud_settings(local_cloud))) as ben_s:
            ben_s.log_in(ben.email, ben.password)
            ben_s.update("本的话")
            wait_until_synced(ben_s)
            assert secret not in ben_s.load(waitMs=2000)["content"]
        assert "本的话" not in ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        assert secret in ServerRows(local_cloud, ann.user_id).all_rows_as_text()

    @pytest.mark.usefixtures("words_of_ann")
    def test_a_user_selects_no_row_of_another_with_their_own_token(
        self, ann: User, ben: User, local_cloud: Cloud
    ) -> None:
        queries = ("", f"&user_id=eq.{ann.user_id}", "&device_id=eq.device-ann")
        with Api(local_cloud, ben) as api:
            for table, query in itertools.product(TABLES, queries):
                if table == "ai_memory_heads" and "device_id" in query:
                    continue
                answer = api.get(f"/rest/v1/{table}?select=*{query}")
                if table == "ai_memory_events":  # read by the function alone
                    assert answer.status_code == 403
                else:
                    assert (answer.status_code, answer.json()) == (200, []), table

    @pytest.mark.usefixtures("words_of_ann")
    def test_with_only_the_app_s_key_a_select_returns_nothing(self, local_cloud: Cloud) -> None:
        with Api(local_cloud, None) as api:
            for table in TABLES:
                answer = api.get(f"/rest/v1/{table}?select=*")
                assert answer.status_code in {401, 403}, table
                assert "device-ann" not in answer.text

    @pytest.mark.usefixtures("words_of_ann")
    def test_pulls_nothing_of_hers_by_naming_her_device(
        self, ann: User, ben: User, local_cloud: Cloud, secret: str
    ) -> None:
        before = ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        with Api(local_cloud, ben) as api:
            registered = api.post("/rest/v1/rpc/ai_memory_register_device", json=sync_of("device-ann", p_name="Ben's"))
            answer = api.post("/rest/v1/rpc/ai_memory_sync", json=sync_of("device-ann"))
            assert secret not in registered.text + answer.text
            assert answer.status_code != 200 or answer.json()["events"] == []
        assert ServerRows(local_cloud, ann.user_id).all_rows_as_text() == before

    @pytest.mark.usefixtures("words_of_ann")
    def test_changes_nothing_of_hers(self, ann: User, ben: User, local_cloud: Cloud) -> None:
        before = ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        body = {"user_id": ann.user_id, "device_id": "device-ann", "content": "von Ben", "name": "von Ben"}
        with Api(local_cloud, ben) as api:
            for table, verb in itertools.product(TABLES, ("PATCH", "POST", "DELETE")):
                where = "" if verb == "POST" else f"?user_id=eq.{ann.user_id}"
                api.request(verb, f"/rest/v1/{table}{where}", json=body)
        assert ServerRows(local_cloud, ann.user_id).all_rows_as_text() == before


class TestOneProfileOneUser:
    def test_another_user_s_login_leaves_hers_as_it_is(
        self, ann_sidecar: Sidecar, ann: User, ben: User, local_cloud: Cloud
    ) -> None:
        home, hers = ann_sidecar.home, ann_sidecar.home.database
        ann_sidecar.call("sync/now")  # the document is sent before a login at the latest, and its version noted
        before = everything_in(hers)
        assert ann_sidecar.log_in(ben.email, ben.password)["account"]["userId"] == ben.user_id
        ann_sidecar.update("本的话")
        wait_until_synced(ann_sidecar)
        assert home.database != hers
        assert everything_in(hers) == before
        ann_sidecar.log_in(ann.email, ann.password)
        ann_sidecar.update("还是安")
        wait_until_synced(ann_sidecar)
        assert "还是安" in ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        assert "还是安" not in ServerRows(local_cloud, ben.user_id).all_rows_as_text()

    def test_what_is_recorded_after_a_logout_waits_for_the_same_user(
        self, ann_sidecar: Sidecar, ann: User, ben: User, local_cloud: Cloud
    ) -> None:
        ann_sidecar.call("auth/logout")
        ann_sidecar.update("等她回来")
        ann_sidecar.log_in(ben.email, ben.password)
        wait_until_synced(ann_sidecar)
        assert "等她回来" not in ServerRows(local_cloud, ben.user_id).all_rows_as_text()
        ann_sidecar.log_in(ann.email, ann.password)
        wait_until_synced(ann_sidecar)
        assert "等她回来" in ServerRows(local_cloud, ann.user_id).all_rows_as_text()

    def test_wrong_credentials_change_nothing(self, ann_sidecar: Sidecar, ann: User) -> None:
        before = everything_in(ann_sidecar.home.database)
        with pytest.raises(CallFailed) as refused:
            ann_sidecar.log_in(ann.email, "not her password")
        assert refused.value.kind == "bad_credentials"
        assert everything_in(ann_sidecar.home.database) == before
        assert ann_sidecar.call("auth/status")["account"]["state"] == "logged_in"


def everything_in(database: Path) -> list[Any]:
    """What a login could change: rows and tokens. Cursors move with every poll and are left out."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = ["events", "accounts", "written", "replica"]
        rows = [connection.execute(f"select * from {table}").fetchall() for table in tables]
    return [*rows, database.with_name("session.json").read_bytes()]
