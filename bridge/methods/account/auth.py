"""`auth/*`: who is logged in, by a code sent to a phone or an address, by a password, or with the app's own session."""

from typing import Annotated, Literal

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.cloud.contact import parse_contact, parse_login_code
from sync.contract.status import AuthJson, CodeSentJson, code_sent_to_json

ContactText = Annotated[str, msgspec.Meta(max_length=320)]


class Start(Params, frozen=True):
    """Either `phone` (E.164; eleven digits that begin with 1 are taken for China) or `email`."""

    phone: ContactText | None = None
    email: ContactText | None = None


class Verify(Params, frozen=True):
    """`phone` or `email` as in `auth/start`. `accept`: the memory is the user's, although damage erased its owner."""

    code: Annotated[str, msgspec.Meta(max_length=64)]
    phone: ContactText | None = None
    email: ContactText | None = None
    accept: bool = False


class Password(Params, frozen=True):
    """`phone` or `email` as in `auth/start`; `accept` as in `auth/verify`."""

    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    phone: ContactText | None = None
    email: ContactText | None = None
    accept: bool = False


class SetSession(Params, frozen=True):
    """`expiresAt` in Unix seconds, as Supabase's own session has it."""

    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    expires_at: Annotated[float, msgspec.Meta(gt=0)]


class Logout(Params, frozen=True):
    """`remove` takes the memory off this machine; `evenUnsent`: also what the cloud does not have yet."""

    local_copy: Literal["keep", "remove"] = "keep"
    even_unsent: bool = False


async def send_code(app: App, params: Start) -> CodeSentJson:
    """Send a code to a phone (SMS) or an e-mail address."""
    contact = parse_contact(phone=params.phone, email=params.email)
    await app.account.auth.send_code(contact)
    return code_sent_to_json(contact)


async def verify_code(app: App, params: Verify) -> AuthJson:
    """Log in with the code that was sent; a first login makes the account."""
    contact, code = parse_contact(phone=params.phone, email=params.email), parse_login_code(params.code)
    return {"account": await app.login_flow.verify_code(contact, code, accept=params.accept)}


async def log_in_with_password(app: App, params: Password) -> AuthJson:
    """Log in with phone number or e-mail address, and password."""
    contact = parse_contact(phone=params.phone, email=params.email)
    return {"account": await app.login_flow.log_in(contact, params.password, accept=params.accept)}


async def set_session(app: App, params: SetSession) -> AuthJson:
    """Work with a session that the app opened and refreshes."""
    return {"account": await app.login_flow.adopt_session(params.access_token, params.expires_at)}


async def status(app: App) -> AuthJson:
    """The account of this memory, and whether it is logged in."""
    return {"account": await app.account.state()}


async def logout(app: App, params: Logout) -> AuthJson:
    """Log out; the memory stays on this device unless its removal is requested."""
    if remove := params.local_copy == "remove":
        await app.ingest_file_edit()  # an edit that was just saved counts as unsent
    state = await app.login_flow.log_out(remove=remove, even_unsent=params.even_unsent)
    return {"account": state}
