"""`auth/*`: who is logged in, by a code sent to a phone or an address, by a password, or with the app's own session."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams, Params
from sync import contract, published
from sync.cloud.contact import code_of, contact_of

Text = Annotated[str, msgspec.Meta(max_length=320)]


class Start(Params, frozen=True):
    """Either `phone` (E.164; eleven digits that begin with 1 are taken for China) or `email`."""

    phone: Text | None = None
    email: Text | None = None


class Verify(Params, frozen=True):
    """`phone` or `email` as in `auth/start`. `accept`: it is mine, although a damage has erased whose it was."""

    code: Annotated[str, msgspec.Meta(max_length=64)]
    phone: Text | None = None
    email: Text | None = None
    accept: bool = False


class Password(Params, frozen=True):
    """`phone` or `email` as in `auth/start`; `accept` as in `auth/verify`."""

    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    phone: Text | None = None
    email: Text | None = None
    accept: bool = False


class SetSession(Params, frozen=True):
    """`expiresAt` in Unix seconds, as Supabase's own session has it."""

    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    expires_at: Annotated[float, msgspec.Meta(gt=0)]


class Logout(Params, frozen=True):
    """`remove` takes the memory off this machine; `evenUnsent`: also what the cloud does not have yet."""

    local_copy: Literal["keep", "remove"] = "keep"
    even_unsent: bool = False


async def start(context: Context[Door], params: Start) -> published.CodeSentJson:
    contact = contact_of(phone=params.phone, email=params.email)
    app = await context.app.opened()
    await app.account.logins.start(contact)
    return contract.code_sent(contact)


async def verify(context: Context[Door], params: Verify) -> published.AuthJson:
    contact, code = contact_of(phone=params.phone, email=params.email), code_of(params.code)
    app = await context.app.opened()
    return {"account": contract.account(await app.entrance.verify(contact, code, accept=params.accept))}


async def password(context: Context[Door], params: Password) -> published.AuthJson:
    contact = contact_of(phone=params.phone, email=params.email)
    app = await context.app.opened()
    return {"account": contract.account(await app.entrance.log_in(contact, params.password, accept=params.accept))}


async def set_session(context: Context[Door], params: SetSession) -> published.AuthJson:
    app = await context.app.opened()
    return {"account": contract.account(await app.entrance.adopt_session(params.access_token, params.expires_at))}


async def status(context: Context[Door], params: NoParams) -> published.AuthJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()
    return {"account": contract.account(await app.account.state())}


async def logout(context: Context[Door], params: Logout) -> published.AuthJson:
    app = await context.app.opened()
    if remove := params.local_copy == "remove":
        await app.look_at_file()  # what was just saved is an event before it is asked what the cloud lacks
    state = await app.entrance.log_out(remove=remove, even_unsent=params.even_unsent)
    return {"account": contract.account(state)}


METHODS: Final[list[Method[Door, Any]]] = [
    Method("auth/start", Start, start, "Send a code to a phone (SMS) or an e-mail address."),
    Method("auth/verify", Verify, verify, "Log in with the code that was sent; a first login makes the account."),
    Method("auth/password", Password, password, "Log in with phone number or e-mail address, and password."),
    Method("auth/setSession", SetSession, set_session, "Work with a session that the app opened and refreshes."),
    Method("auth/status", NoParams, status, "Whose memory this is, and whether he is logged in."),
    Method("auth/logout", Logout, logout, "End the session; the memory stays on this device, or goes if asked."),
]
