"""Signing in with a code: by e-mail, and by phone, which lite does not know.

Each phone number gets an e-mail account behind it. A request that names a phone is passed on as one that names the
account's address; an answer that names such an address names the phone. The code that a person would read is logged,
and `GET /_local/codes/<phone or address>` gives the last one.

Differences that stay: the claims of a phone's token hold the inner address, a code may be asked for as often as one
likes, and a phone cannot be added to an account that exists.
"""

import json
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from tests.cloud.web import Request, Response

log = logging.getLogger("tests.cloud")

DOMAIN = "phone.invalid"
PATHS = {"/auth/v1/otp", "/auth/v1/verify", "/auth/v1/signup", "/auth/v1/token", "/auth/v1/resend"}
E164 = re.compile(r"\+?([1-9]\d{6,14})")
CODE = re.compile(r"\b\d{6}\b")
LITE_CALLS_IT = {"sms": "magiclink", "email": "magiclink"}  # /verify's `type` of a code that /otp has sent

PassOn = Callable[[Request], Awaitable[Response]]


class Codes:
    def __init__(self, pass_on: PassOn) -> None:
        self._pass_on = pass_on

    async def answer(self, request: Request) -> Response:
        """Answer any Auth request, with phones where accounts have them."""
        asked = _read(request.body) if request.path in PATHS else None
        if not isinstance(asked, dict):
            return _naming_phones(await self._pass_on(request))
        if request.path == "/auth/v1/verify":
            asked["type"] = LITE_CALLS_IT.get(asked.get("type", ""), asked.get("type"))
        if phone := asked.pop("phone", None):
            number = E164.fullmatch(str(phone))
            if number is None:
                return _json(
                    400, {"code": 400, "error_code": "validation_failed", "msg": "Invalid phone number format"}
                )
            asked["email"] = _address(number.group(1))
        response = await self._pass_on(replace(request, body=_written(asked)))
        if request.path == "/auth/v1/otp" and response.status == 200:
            log.warning("the code for %s: %s", phone or asked.get("email"), await self._last(str(asked.get("email"))))
        return _naming_phones(response)

    async def code(self, receiver: str) -> Response:
        """What stands in the last message to this phone or address."""
        receiver = unquote(receiver)
        number = E164.fullmatch(receiver)
        code = await self._last(_address(number.group(1)) if number else receiver)
        return _json(200, {"code": code}) if code else _json(404, {"message": f"no code was sent to {receiver}"})

    async def _last(self, address: str) -> str | None:
        letter = await self._pass_on(Request("GET", f"/_local/letters?to={quote(address)}", [], b""))
        found = CODE.search(_read(letter.body)["text"]) if letter.status == 200 else None
        return found.group() if found else None


def _address(number: str) -> str:
    return f"{number}@{DOMAIN}"


def _naming_phones(response: Response) -> Response:
    if f"@{DOMAIN}".encode() not in response.body:
        return response
    return replace(response, body=_written(_with_phones(_read(response.body))))


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


def _read(body: bytes) -> Any:
    """None for what is no JSON: lite has the right answer to that."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _json(status: int, value: Any) -> Response:
    return Response(status, [(b"content-type", b"application/json")], _written(value))
