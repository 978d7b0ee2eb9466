"""The Electron app hands over a session that it opened itself, with the real API and server."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.acceptance.environment import ServerRows, cloud_settings, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar


def token_of(cloud: Cloud, email: str, password: str) -> str:
    """What supabase-js has in the app after a login."""
    answer = httpx.post(
        f"{cloud.url}/auth/v1/token?grant_type=password",
        json={"email": email, "password": password},
        headers={"apikey": cloud.publishable_key},
        trust_env=False,
    )
    return str(answer.raise_for_status().json()["access_token"])


def test_an_update_travels_with_the_apps_own_token(
    tmp_path: Path, local_cloud: Cloud, new_user: Callable[[], User]
) -> None:
    user = new_user()
    home = Home(tmp_path / "a", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.update("登录之前")
        token = token_of(local_cloud, user.email, user.password)
        answer = sidecar.call("auth/setSession", accessToken=token, expiresAt=time.time() + 3600)
        assert answer["account"]["userId"] == user.user_id
        wait_until_synced(sidecar)
        assert len(ServerRows(local_cloud, user.user_id).event_ids()) == 1
    assert token not in "".join(
        path.read_text("utf-8", errors="ignore") for path in home.folder.rglob("*") if path.is_file()
    )


def test_a_token_that_is_none_is_refused_with_a_hint(tmp_path: Path, local_cloud: Cloud) -> None:
    with Sidecar(Home(tmp_path / "a", **cloud_settings(local_cloud))) as sidecar, pytest.raises(CallFailed) as refused:
        sidecar.call("auth/setSession", accessToken="not a token", expiresAt=time.time() + 3600)
    assert refused.value.kind == "login_required"
