"""A call under the user's token, with a deadline; a token that the server refuses is refreshed once.

Once more where the fresh one ran out before it was used: a machine may sleep between the two.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from sync.cloud.account import Account
from sync.cloud.logins import Session
from sync.errors import CloudUnavailable, Forbidden, LoginRequired

T = TypeVar("T")

TOKENS: Final = 4  # the stored one, a fresh one, and more where the machine slept between a refresh and its use


async def authorized(
    account: Account, call: Callable[[Session], Awaitable[T]], *, timeout: float, session: Session | None = None
) -> T:
    """What `call` answers within `timeout` seconds a try. Raises what it raises, CloudUnavailable, Forbidden."""
    current = session or await account.session()
    refused: LoginRequired | None = None
    for attempt in range(TOKENS):
        try:
            return await _within(timeout, call(current))
        except LoginRequired as error:
            tried, refused = current.access_token, error
        current = await account.session(rejected=None if attempt else tried)
        if current.access_token == tried:  # it has not run out: another refresh would end the same way, at every poll
            break
    hint = "Log in again; if that does not help, check the keys of the Supabase project."
    raise Forbidden("the server does not accept a token it has just issued", hint=hint) from refused


async def _within(seconds: float, call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise CloudUnavailable(f"no answer within {seconds:g} s") from error
