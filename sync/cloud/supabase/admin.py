"""Administrate a project with its secret key. The sidecar does not import this module.

The key bypasses row-level security, so it lives for one command: it comes from the environment and is sent to the
project's address only. The server bounds each step, and the client repeats steps until they are done; a command that
was killed can be given again.
"""

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec
from postgrest import AsyncPostgrestClient
from postgrest.exceptions import APIError
from postgrest.types import CountMethod

from sync.cloud.supabase.cloud import error_of_reply
from sync.cloud.supabase.http_client import HttpClient
from sync.errors import CloudUnavailable, Forbidden, LoginRequired, SchemaMismatch

T = TypeVar("T")

STEP_SECONDS: Final = 30.0  # for one step; the server gives up long before
STEP_EVENTS: Final = 2_000  # takes seconds on a busy server; its limit is 8 s
PAGE_ROWS: Final = 1_000  # PostgREST's maximum on a hosted project


class AdminStep(msgspec.Struct, frozen=True):
    """The events that one step folded, deleted or erased. `held_by` is the device that blocks further folding."""

    events: int
    done: bool
    held_by: str | None = None


class _CheckpointReply(msgspec.Struct):
    folded: int
    done: bool
    held_by: str | None = None


class _PurgeReply(msgspec.Struct):
    events: int
    folded: int
    done: bool


class AdminClient:
    """A project, accessed with its secret key. `url` has no trailing slash."""

    def __init__(self, url: str, key: str) -> None:
        self._http = HttpClient(url, STEP_SECONDS)
        headers = {"apikey": key, "Authorization": f"Bearer {key}"}
        self._rest = AsyncPostgrestClient(
            f"{url}/rest/v1", headers=headers, http_client=self._http.client, retry_enabled=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def view_rows(
        self,
        view: str,
        *,
        order: str,
        newest: bool = False,
        filters: Mapping[str, str] | None = None,
        limit: int = PAGE_ROWS,
    ) -> list[dict[str, Any]]:
        """At most `limit` rows of `ai_memory_admin_<view>`. `filters` maps a column to PostgREST's condition."""
        rows: list[dict[str, Any]] = []
        while len(rows) < limit:
            query = self._rest.from_(f"ai_memory_admin_{view}").select("*", count=CountMethod.exact)
            for column, condition in (filters or {}).items():
                operator, _, value = condition.partition(".")
                query = query.filter(column, operator, value)
            page = query.order(order, desc=newest).order("user_id" if view != "growth" else "day")
            try:
                answer = await self._await_reply(page.range(len(rows), min(len(rows) + PAGE_ROWS, limit) - 1))
            except SchemaMismatch as error:
                hint = "Run the migrations, then sql/admin/views.sql on the project (sql/admin/README.md)."
                raise SchemaMismatch("the project has no views for administrators", hint=hint) from error
            rows.extend(answer.data)
            if not answer.data or len(rows) >= (answer.count or 0):
                break
        return rows

    async def checkpoint(self, user_id: str, days: int) -> AsyncIterator[AdminStep]:
        """Fold, step by step, the events that every device seen in the last `days` holds."""
        done = False
        while not done:
            value = await self._call(
                "ai_memory_admin_checkpoint", {"p_user": user_id, "p_days": days, "p_most": STEP_EVENTS}
            )
            reply = _convert_reply(value, _CheckpointReply)
            done = reply.done
            yield AdminStep(reply.folded, reply.done, reply.held_by)

    async def prune(self, user_id: str) -> AsyncIterator[AdminStep]:
        """Delete, step by step, the rows that a checkpoint contains."""
        deleted = STEP_EVENTS
        while deleted == STEP_EVENTS:
            value = await self._call("ai_memory_admin_prune", {"p_user": user_id, "p_most": STEP_EVENTS})
            deleted = _convert_reply(value, int)
            yield AdminStep(deleted, done=deleted < STEP_EVENTS)

    async def purge(self, user_id: str, *, account: bool) -> AsyncIterator[AdminStep]:
        """Erase all data of a user, step by step; with `account`, also the user."""
        done = False
        while not done:
            value = await self._call(
                "ai_memory_admin_purge", {"p_user": user_id, "p_account": account, "p_most": STEP_EVENTS}
            )
            reply = _convert_reply(value, _PurgeReply)
            done = reply.done
            yield AdminStep(reply.events + reply.folded, reply.done)

    async def _call(self, function: str, arguments: dict[str, Any]) -> object:
        return (await self._await_reply(self._rest.rpc(function, arguments))).data

    async def _await_reply(self, query: Any) -> Any:
        try:
            return await self._http.await_reply(query.execute())
        except APIError as error:
            raise _translate_login_error(error_of_reply(error)) from error
        except LoginRequired as error:
            raise _translate_login_error(error) from error


def _translate_login_error(error: Exception) -> Exception:
    """An administrator has no login to lose: name the key instead."""
    if isinstance(error, LoginRequired):
        return Forbidden("the project does not accept the secret key", hint="Check the key and the project's address.")
    return error


def _convert_reply(value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CloudUnavailable("the answer is not one of our functions for administrators") from error
