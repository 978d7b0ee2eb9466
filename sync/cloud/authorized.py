"""A call under the user's token, with a deadline; a token that the server refuses is refreshed once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sync.cloud.account import Account
from sync.cloud.logins import Session
from sync.errors import CloudUnavailable, Forbidden, LoginRequired

T = TypeVar("T")


async def authorized(
    account: Account, call: Callable[[Session], Awaitable[T]], *, timeout: float, session: Session | None = None
) -> T:
    """What `call` answers within `timeout` seconds a try. Raises what it raises, CloudUnavailable, Forbidden."""
    first = session or await account.session()
    try:
        return await _within(timeout, call(first))
    except LoginRequired:
        fresh = await account.session(rejected=first.access_token)  # one refresh, one more try
    try:
        return await _within(timeout, call(fresh))
    except LoginRequired as error:  # another refresh would end the same way, at every poll
        hint = "Log in again; if that does not help, check the keys of the Supabase project."
        raise Forbidden("the server does not accept a token it has just issued", hint=hint) from error


async def _within(seconds: float, call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise CloudUnavailable(f"no answer within {seconds:g} s") from error
