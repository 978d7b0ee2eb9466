"""`redaction.enabled = false` is about what stays on this device; what leaves is redacted whatever it says."""

from pathlib import Path

import pytest

from tests.acceptance.environment import ServerRows, cloud_settings, local_rows, wait_for_lines, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

NUMBER, PLACEHOLDER = "13812345678", "[手机号]"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, REDACTION__ENABLED="false")


def test_the_file_holds_what_was_said_and_the_server_its_redacted_form(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    home = Home(tmp_path, REDACTION__ENABLED="false", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update(f"打给 {NUMBER}", f"好，{NUMBER}")
        assert NUMBER in sidecar.load(waitMs=0)["document"]
        wait_for_lines(home, NUMBER)
        wait_until_synced(sidecar)
        (told,) = sidecar.call("events/read", types=["exchange_recorded"])["events"]
        assert NUMBER not in str(told)
        server = ServerRows(local_cloud, user.user_id)
        sidecar.call("sync/now")
        wait_until(lambda: any(PLACEHOLDER in str(row) for row in server.documents))
        assert NUMBER not in server.all_rows_as_text()
        assert PLACEHOLDER in str(server.events)


def test_what_a_command_recorded_meanwhile_is_in_the_next_document_and_nowhere_kept_longer(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.call("sync/status")
        home.run("update", f"打给 {NUMBER}", "好的")
        sidecar.call_until("memory/load", lambda told: NUMBER in told["document"], waitMs=0)
        wait_for_lines(home, NUMBER)
        wait_until(lambda: local_rows(home, "select count(*) from captured") == [(0,)])


def test_forgetting_takes_the_raw_words_too(home: Home) -> None:
    with Sidecar(home) as sidecar:
        event_id = sidecar.update(f"打给 {NUMBER}")["eventId"]
        wait_for_lines(home, NUMBER)
        sidecar.call("events/forget", eventIds=[event_id])
        wait_until(lambda: NUMBER not in home.file.read_text("utf-8"))
        wait_until(lambda: local_rows(home, "select count(*) from captured") == [(0,)])


def test_by_default_it_is_redacted(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Sidecar(home) as sidecar:
        sidecar.update(f"打给 {NUMBER}")
        wait_for_lines(home, PLACEHOLDER)
        assert NUMBER not in str(sidecar.load(waitMs=0))
        assert local_rows(home, "select count(*) from captured") == [(0,)]
