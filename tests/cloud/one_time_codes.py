"""Signing in with a code: by e-mail, and by phone, which lite does not know.

Each phone number gets an e-mail account behind it; requests and answers are translated between the two. The code is
logged, and `GET /_local/codes/<phone or address>` returns the last one.

As on a hosted project, a minute must pass between two messages to one user, and a code is valid for an hour. Tests need
not wait: `POST /_local/codes/<phone or address>/age?seconds=60` makes the last message older.

Differences: the claims of a phone's token contain the inner address, and a phone cannot be added to an existing
account.
"""

import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.cloud.http_server import Request, Response

log = logging.getLogger("tests.cloud")

DOMAIN = "phone.invalid"
PATHS = {"/auth/v1/otp", "/auth/v1/verify", "/auth/v1/signup", "/auth/v1/token", "/auth/v1/resend"}
E164 = re.compile(r"\+?([1-9]\d{6,14})")
CODE = re.compile(r"\b\d{6}\b")
SENDING = {"/auth/v1/otp", "/auth/v1/resend"}
RESEND_SECONDS = 60.0  # supabase.com/docs/guides/auth/phone-login: once every 60 seconds, good for an hour
CODE_SECONDS = 3600.0
LITE_CALLS_IT = {"sms": "magiclink", "email": "magiclink"}  # /verify's `type` of a code that /otp has sent

PassOn = Callable[[Request], Awaitable[Response]]


class OneTimeCodes:
    def __init__(self, pass_on: PassOn) -> None:
        self._pass_on = pass_on
        self._sent: dict[str, float] = {}  # when, by the address of the account

    async def answer(self, request: Request) -> Response:
        """Answer an Auth request, with phones translated."""
        asked = _decode(request.body) if request.path in PATHS else None
        if not isinstance(asked, dict):
            return _naming_phones(await self._pass_on(request))
        if request.path == "/auth/v1/verify":
            asked["type"] = LITE_CALLS_IT.get(asked.get("type", ""), asked.get("type"))
        phone = asked.pop("phone", None)
        if phone:
            number = E164.fullmatch(str(phone))
            if number is None:
                return _refusal(400, "validation_failed", "Invalid phone number format (E.164 required)")
            asked["email"] = _address(number.group(1))
        address = str(asked.get("email")).lower()
        if refusal := self._too_early_or_late(request.path, address, kind="sms" if phone else "email"):
            return refusal
        response = await self._pass_on(replace(request, body=_encode(asked)))
        if request.path in SENDING and response.status == 200:
            self._sent[address] = time.monotonic()
            log.warning("the code for %s: %s", phone or address, await self._last(address))
        return _naming_phones(response)

    def _too_early_or_late(self, path: str, address: str, *, kind: str) -> Response | None:
        age = time.monotonic() - self._sent.get(address, float("-inf"))
        if path in SENDING and age < RESEND_SECONDS:
            wait = f"For security purposes, you can only request this after {int(RESEND_SECONDS - age)} seconds."
            return _refusal(429, f"over_{kind}_send_rate_limit", wait)
        if path == "/auth/v1/verify" and address in self._sent and age > CODE_SECONDS:
            return _refusal(403, "otp_expired", "Token has expired or is invalid")
        return None

    async def handle_locally(self, request: Request) -> Response:
        """Answer a test's request about the messages to one phone or address."""
        receiver, _, verb = unquote(request.path.removeprefix("/_local/codes/")).partition("/")
        number = E164.fullmatch(receiver)
        address = _address(number.group(1)) if number else receiver.lower()
        if verb == "age":
            self._sent[address] -= float(parse_qs(urlsplit(request.target).query)["seconds"][0])
            return Response(204)
        code = await self._last(address)
        return _json(200, {"code": code}) if code else _json(404, {"message": f"no code was sent to {receiver}"})

    async def _last(self, address: str) -> str | None:
        letter = await self._pass_on(Request("GET", f"/_local/letters?to={quote(address)}", [], b""))
        found = CODE.search(_decode(letter.body)["text"]) if letter.status == 200 else None
        return found.group() if found else None


def _address(number: str) -> str:
    return f"{number}@{DOMAIN}"


def _naming_phones(response: Response) -> Response:
    if f"@{DOMAIN}".encode() not in response.body:
        return response
    return replace(response, body=_encode(_with_phones(_decode(response.body))))


def _with_phones(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_phones(item) for item in value]
    if not isinstance(value, dict):
        return "phone" if value == "email" else value  # the provider
    named = {name: _with_phones(item) for name, item in value.items()}
    address = value.get("email")
    if isinstance(address, str) and address.endswith(f"@{DOMAIN}"):
        named |= {"email": "", "phone": address.partition("@")[0]}
    return named


def _decode(body: bytes) -> Any:
    """None if the body is not JSON; lite answers that."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _refusal(status: int, code: str, message: str) -> Response:
    """An error in the form for clients that name no version of the API."""
    return _json(status, {"code": status, "error_code": code, "msg": message})


def _json(status: int, value: Any) -> Response:
    return Response(status, [(b"content-type", b"application/json")], _encode(value))
