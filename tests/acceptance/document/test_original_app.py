"""The original app beside the sidecar: it upserts its text into the device's row, in the session that both use."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.environment import (
    Network,
    ServerRows,
    cloud_settings,
    events_of,
    question_counts,
    unique_text,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    return Home(tmp_path / "a", device="device-a", **cloud_settings(local_cloud, network.url))


class OriginalApp:
    """Loads the document of its device from the cloud, edits it, writes it back whole."""

    def __init__(self, client: httpx.Client, data: Path) -> None:
        self._client = client
        self._data = data

    def use_shared_session(self) -> None:
        """Another session of the account may not write what a device with a key has."""
        for session in self._data.glob("profiles/*/session.json"):
            token = json.loads(session.read_text("utf-8"))["access_token"]
            self._client.headers["authorization"] = f"Bearer {token}"

    def load(self) -> str:
        rows = self._client.get("/rest/v1/ai_memory?select=content&device_id=eq.device-a").raise_for_status().json()
        return str(rows[0]["content"])

    def save(self, content: str) -> None:
        self.use_shared_session()
        row = {"device_id": "device-a", "content": content, "updated_at": "2026-01-08T15:49:12Z"}
        headers = {"prefer": "resolution=merge-duplicates"}
        self._client.post(
            "/rest/v1/ai_memory?on_conflict=user_id,device_id", json=row, headers=headers
        ).raise_for_status()

    def edit(self, old: str, new: str) -> None:
        text = self.load()
        assert old in text
        self.save(text.replace(old, new, 1))


@pytest.fixture
def app(local_cloud: Cloud, user: User, home: Home) -> Iterator[OriginalApp]:
    with httpx.Client(base_url=local_cloud.url, trust_env=False, timeout=30) as client:
        client.headers["apikey"] = local_cloud.publishable_key
        person = {"email": user.email, "password": user.password}
        token = client.post("/auth/v1/token?grant_type=password", json=person).raise_for_status().json()
        client.headers["authorization"] = f"Bearer {token['access_token']}"
        yield OriginalApp(client, home.data)


@contextmanager
def open_logged_in(home: Home, user: User) -> Iterator[Sidecar]:
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        wait_until_synced(sidecar)
        yield sidecar


def type_lines(home: Home, *lines: str) -> None:
    text, block = home.file.read_text("utf-8"), "".join(f"{line}\n" for line in lines)
    home.file.write_text(text.replace("### 工作习惯\n", f"### 工作习惯\n{block}"), "utf-8")


def wait_for_row(server: ServerRows, *texts: str) -> None:
    """Until the row is ours again and holds all of these."""

    def look() -> bool:
        (row,) = server.documents
        return row["replica_id"] is not None and all(text in row["content"] for text in texts)

    wait_until(look)


def manual_edits(sidecar: Sidecar) -> list[dict[str, Any]]:
    return events_of(sidecar, "entry_added", "entry_edited", "entry_removed")


def test_its_lines_come_into_the_file_and_its_removals_leave_it(
    home: Home, user: User, server: ServerRows, app: OriginalApp
) -> None:
    stays, goes, comes = unique_text("- 留"), unique_text("- 去"), unique_text("- 来")
    with open_logged_in(home, user) as sidecar:
        sidecar.update("一")
        wait_for_lines(home, "一")
        type_lines(home, stays, goes, "- 电话 13812345678")
        wait_until(lambda: sidecar.call("sync/now") and server.documents and goes in server.documents[0]["content"])
        before = len(manual_edits(sidecar))
        app.edit(f"{goes}\n", f"{comes}\n- 电话不变\n")
        wait_for_lines(home, stays, comes)
        wait_until(lambda: goes not in home.file.read_text("utf-8"))
        wait_for_row(server, stays, comes, "[手机号]")
        assert goes not in server.documents[0]["content"]
        assert "- 电话 13812345678\n" in home.file.read_text("utf-8")
        new = [event["payload"].get("text") for event in manual_edits(sidecar)[before:]]
        assert comes in new
        wait_until(lambda: any(row["payload"].get("text") == comes for row in server.events))
        state = (server.documents, len(manual_edits(sidecar)))
        for _ in range(3):  # a second and a third round have nothing to say
            sidecar.call("sync/now")
        assert (server.documents, len(manual_edits(sidecar))) == state


def test_what_it_wrote_while_we_were_offline_and_what_we_did_meanwhile_are_both_kept(
    home: Home, user: User, server: ServerRows, app: OriginalApp, network: Network
) -> None:
    with open_logged_in(home, user) as sidecar:
        sidecar.update("在线")
        wait_until(lambda: sidecar.call("sync/now") and server.documents and "在线" in server.documents[0]["content"])
        network.disconnect()
        sidecar.update("离线")
        theirs = unique_text("- 它")
        app.edit("### 工作习惯\n", f"### 工作习惯\n{theirs}\n")
        network.reconnect()
        wait_for_lines(home, theirs, "离线")
        wait_for_row(server, theirs, "离线")
        assert question_counts(home.file.read_text("utf-8")) == {"在线": 1, "离线": 1}
        assert len(server.event_ids()) == 2


def test_killed_as_soon_as_it_is_taken_in_it_is_there_once(
    home: Home, user: User, server: ServerRows, app: OriginalApp
) -> None:
    theirs = unique_text("- 它")
    with open_logged_in(home, user) as sidecar:
        sidecar.update("一")
        wait_until(lambda: sidecar.call("sync/now") and server.documents and "一" in server.documents[0]["content"])
        app.edit("### 工作习惯\n", f"### 工作习惯\n{theirs}\n")
        wait_for_lines(home, theirs)
        sidecar.kill()
    with Sidecar(home) as again:
        wait_for_row(server, theirs)
        wait_until_synced(again)
        assert home.file.read_text("utf-8").count(theirs) == 1
        assert [event["payload"].get("text") for event in manual_edits(again)].count(theirs) == 1
        assert len([row for row in server.events if row["payload"].get("text") == theirs]) == 1


def test_a_mass_delete_there_is_asked_about_and_then_put_back(
    home: Home, user: User, server: ServerRows, app: OriginalApp
) -> None:
    lines = [unique_text("- 行") for _ in range(8)]
    with open_logged_in(home, user) as sidecar:
        sidecar.update("一")
        wait_for_lines(home, "一")
        type_lines(home, *lines)
        wait_until(
            lambda: sidecar.call("sync/now") and server.documents and lines[-1] in server.documents[0]["content"]
        )
        footer = app.load().splitlines()[-1]
        app.save(f"# AI 对话记忆\n\n## 用户偏好\n\n- 只剩这行\n\n{footer}\n")
        sidecar.call_until("sync/status", lambda told: "cloud_mass_delete" in told["document"]["warnings"])
        assert server.documents[0]["replica_id"] is None, "it must not be written over"
        assert all(line in home.file.read_text("utf-8") for line in lines)
        sidecar.update("照常")
        wait_until_synced(sidecar)
        sidecar.call("memory/resolve", answer="restore")
        wait_for_row(server, *lines, "照常")
        assert "cloud_mass_delete" not in sidecar.call("sync/status")["document"]["warnings"]


def test_a_row_that_waits_for_a_new_machine_becomes_its_document(
    home: Home, user: User, server: ServerRows, app: OriginalApp
) -> None:
    old = unique_text("- 从前")
    app.save(f"# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n{old}\n")
    with open_logged_in(home, user):
        wait_for_lines(home, old)
        wait_for_row(server, old)
