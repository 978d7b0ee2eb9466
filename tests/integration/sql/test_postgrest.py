"""Through the API that clients use: /rest/v1, with the status codes and error bodies of PostgREST."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sync.cloud.supabase import schema_version
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import document, event

CALL = {"p_device_id": "d1", "p_replica_id": "r1"}


@pytest.fixture
def anon(local_cloud: LocalCloud) -> Iterator[httpx.Client]:
    """A caller with the publishable key, which everyone has."""
    headers = {"apikey": local_cloud.publishable_key}
    with httpx.Client(base_url=local_cloud.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
def user(local_cloud: LocalCloud, anon: httpx.Client) -> Iterator[httpx.Client]:
    person = {"email": f"{uuid4()}@example.com", "password": "a long password"}
    local_cloud.sign_up(**person)
    token = anon.post("/auth/v1/token?grant_type=password", json=person).json()["access_token"]
    headers = {**anon.headers, "authorization": f"Bearer {token}"}
    with httpx.Client(base_url=local_cloud.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


def rpc(client: httpx.Client, function: str, **arguments: Any) -> httpx.Response:
    return client.post(f"/rest/v1/rpc/{function}", json=arguments)


def test_an_event_and_the_document_travel_through_the_api(user: httpx.Client) -> None:
    assert rpc(user, "ai_memory_schema_version").json() == schema_version.REQUIRED_VERSION
    assert rpc(user, "ai_memory_register_device", **CALL, p_name="书房").json()["name"] == "书房"
    sent = event(1, payload={"text": "记忆", "n": 2**50, "deep": [None, {"f": 0.1}]})
    answer = rpc(user, "ai_memory_sync", **CALL, p_events=[sent], p_snapshot=document("# 记忆\n", 1)).json()
    assert answer["acked"] == [[sent["event_id"], 1]]
    assert answer["snapshot"] == "written"
    (back,) = answer["events"]
    assert {key: back[key] for key in sent} == sent
    again = rpc(user, "ai_memory_sync", **CALL, p_events=json.dumps([sent])).json()
    assert again["acked"] == answer["acked"]
    assert user.get("/rest/v1/ai_memory?select=content,device_id").json() == [
        {"content": "# 记忆\n", "device_id": "d1"}
    ]


def test_refusals_carry_code_kind_and_hint(user: httpx.Client) -> None:
    unregistered = rpc(user, "ai_memory_sync", **CALL)
    assert unregistered.status_code == httpx.codes.FORBIDDEN
    assert (unregistered.json()["code"], json.loads(unregistered.json()["details"])) == (
        "42501",
        {"kind": "device_unregistered"},
    )
    rpc(user, "ai_memory_register_device", **CALL)
    bad = event(2, hlc="never")
    refused = rpc(user, "ai_memory_sync", **CALL, p_events=[event(1), bad])
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert refused.json()["code"] == "22023"
    assert json.loads(refused.json()["details"]) == {"kind": "bad_event", "field": "hlc", "event_id": bad["event_id"]}
    assert refused.json()["hint"]
    many = rpc(user, "ai_memory_sync", **CALL, p_events=[event(n) for n in range(1, 502)])
    assert many.status_code == httpx.codes.BAD_REQUEST
    assert json.loads(many.json()["details"]) == {"kind": "batch_too_large"}


def test_the_publishable_key_alone_opens_nothing(anon: httpx.Client) -> None:
    for table in ("ai_memory", "ai_memory_events", "ai_memory_heads", "ai_memory_devices"):
        assert anon.get(f"/rest/v1/{table}").status_code == httpx.codes.UNAUTHORIZED
    for function, arguments in {"ai_memory_sync": CALL, "ai_memory_register_device": CALL}.items():
        answer = rpc(anon, function, **arguments)
        assert (answer.status_code, answer.json()["code"]) == (httpx.codes.UNAUTHORIZED, "42501")


def test_the_original_app_upserts_through_the_api(user: httpx.Client) -> None:
    headers = {"prefer": "resolution=merge-duplicates"}
    for content in ("# first\n", "# second\n"):
        row = {"device_id": "hardware-1", "content": content, "updated_at": "2026-02-02T10:00:00Z"}
        answer = user.post("/rest/v1/ai_memory?on_conflict=user_id,device_id", json=row, headers=headers)
        assert answer.is_success, answer.text
    assert user.get("/rest/v1/ai_memory?select=content").json() == [{"content": "# second\n"}]
