"""Make a call with a deadline, and once more with a fresh token if the server refuses the token."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from sync.cloud.auth.account import Account
from sync.cloud.auth_port import AuthSession
from sync.errors import CloudUnavailable, Forbidden, LoginRequired

T = TypeVar("T")

MAX_TOKENS: Final = 4  # the stored one, a fresh one, and more if the machine slept between a refresh and its use


async def with_fresh_token(
    account: Account, call: Callable[[AuthSession], Awaitable[T]], *, timeout: float, session: AuthSession | None = None
) -> T:
    """The result of `call`, with `timeout` seconds for each try. Raises its errors, CloudUnavailable, Forbidden."""
    current = session or await account.session()
    refused: LoginRequired | None = None
    for attempt in range(MAX_TOKENS):
        try:
            return await _with_timeout(timeout, call(current))
        except LoginRequired as error:
            tried, refused = current.access_token, error
        current = await account.session(rejected_token=None if attempt else tried)
        if current.access_token == tried:  # a fresh token that has not expired: refreshing again would not help
            break
    hint = "Log in again; if that does not help, check the keys of the Supabase project."
    raise Forbidden("the server does not accept a token it has just issued", hint=hint) from refused


async def _with_timeout(seconds: float, call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise CloudUnavailable(f"no answer within {seconds:g} s") from error
