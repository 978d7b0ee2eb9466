"""Access through PostgREST: the same checks as with a direct connection, committed, with tokens made here."""

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Final

import httpx

from tests.cloud.fixtures import Cloud as RunningCloud
from tests.integration.sql.connections import Connection, Json
from tests.integration.sql.permissions.fixture_rows import LOST, Actor, FixtureRows, rolled_back
from tests.integration.sql.permissions.matrix import CALLS, SHAPES, Catalogue, Check, owners_of, snapshot_rows

HOUR: Final = 3600
UNAUTHORIZED: Final = "unauthorized"  # PostgREST did not take the token at all
UPSERT: Final = {"prefer": "resolution=merge-duplicates"}


def token(claims: Json, secret: str, *, expired: bool = False) -> str:
    """As Auth makes one; an expired one was good until an hour ago."""
    end = int(time.time()) + (-HOUR if expired else HOUR)
    said = {"aud": "authenticated", "iat": end - HOUR, "exp": end, **claims}
    parts = b".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, said))
    return (parts + b"." + _encoded(hmac.digest(secret.encode(), parts, hashlib.sha256))).decode()


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


@dataclass(frozen=True)
class PostgrestAccess:
    """Rows stay written, so `before` is looked at each time; a scene is for one actor."""

    client: httpx.Client
    project: RunningCloud
    admin: Connection
    scene: FixtureRows
    catalogue: Catalogue

    def attempt(self, check: Check) -> str:
        before = self._snapshot_rows()
        answer = self._send(check)
        if answer.is_error:
            return outcome_of(answer)
        said = answer.text if answer.text not in {"", "[]", "null", '""'} else ""
        read = owners_of(self.scene.names_in(said), self.scene, check.actor, rows=bool(said))
        changed = self._snapshot_rows() ^ before
        wrote = owners_of({name for _, name, _ in changed}, self.scene, check.actor)
        return {"select": f"reads {read}", "call": f"reads {read}, writes {wrote}"}.get(check.verb, f"writes {wrote}")

    def _snapshot_rows(self) -> set[tuple[str, str, str]]:
        with rolled_back(self.admin) as cursor:
            return snapshot_rows(cursor, self.catalogue, self.scene)

    def _send(self, check: Check) -> httpx.Response:
        headers, path = self._headers(check.actor), f"/rest/v1/{check.subject}"
        if check.verb == "call":
            arguments = CALLS[check.subject](self.scene, check.actor)
            return self.client.post(f"/rest/v1/rpc/{check.subject}", json=arguments, headers=headers)
        if check.verb == "select":
            return self.client.get(path, headers=headers)
        shape = SHAPES[check.subject]
        # The API refuses to change a table without a filter; this one lets every row of the scene through.
        column = "device_id" if check.actor.device == LOST and shape.has_device else shape.owner
        people = ",".join(person.user_id for person in self.scene.people)
        where = {column: f"eq.{LOST}" if column == "device_id" else f"in.({people})"}
        if check.verb == "delete":
            return self.client.delete(path, params=where, headers=headers)
        if check.verb in {"update", "give"}:
            victim = {shape.owner: self.scene.victim_of(check.actor).user_id}
            change = shape.change if check.verb == "update" else victim
            return self.client.patch(path, params=where, json=change, headers=headers)
        upsert = check.verb == "upsert"
        row = shape.row_of(check.actor, self.scene, new=not upsert, planted=check.verb == "plant")
        key = {"on_conflict": ",".join(shape.key)} if upsert else {}
        return self.client.post(path, params=key, json=row, headers=headers | (UPSERT if upsert else {}))

    def _headers(self, actor: Actor) -> dict[str, str]:
        if actor.role == "service_role":
            return {"apikey": self.project.secret_key, "authorization": f"Bearer {self.project.secret_key}"}
        headers = {"apikey": self.project.publishable_key}
        claims = actor.claims if actor.role == "authenticated" else None
        if actor.name == "expired token":
            claims = self.scene.alice.claims()
        if claims is not None:
            signed = token(claims, self.project.jwt_secret, expired=actor.claims is None)
            headers["authorization"] = f"Bearer {signed}"
        return headers


def outcome_of(answer: httpx.Response) -> str:
    body = answer.json()
    code, details = str(body.get("code")), body.get("details")
    if answer.status_code == httpx.codes.UNAUTHORIZED and not code.startswith("42"):
        return UNAUTHORIZED
    if code != "42501" or answer.status_code not in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return f"error {code} ({answer.status_code})"
    return f"refused {json.loads(details)['kind']}" if details else "denied"
