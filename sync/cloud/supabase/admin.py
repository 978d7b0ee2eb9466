"""What an administrator may ask of a project, and do to it, with its secret key. Nothing of a sidecar imports this.

The key passes row-level security by, so it lives for one command: it comes from the environment, is sent to the
project's own address and nowhere else, and is in no setting, argument, file or log. Steps are bounded on the server and
repeated here until they are done, so a command that was killed is simply given again.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
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

STEP_SECONDS: Final = 30.0  # one step of folding or erasing; the server gives up long before
STEP_EVENTS: Final = 2_000  # some seconds of work on a busy server, whose limit is 8 s
PAGE_ROWS: Final = 1_000  # rows of a view in one answer; what PostgREST gives at most on a hosted project


@dataclass(frozen=True, slots=True)
class AdminStep:
    """What one bounded step did: events folded, deleted or erased; `held_by`: the device that stops the folding."""

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
    """A project under its secret key. `url` without a trailing slash."""

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
        """Rows of `ai_memory_admin_<view>`, at most `limit`, in pages. `where`: column to PostgREST's condition."""
        found: list[dict[str, Any]] = []
        while len(found) < limit:
            query = self._rest.from_(f"ai_memory_admin_{view}").select("*", count=CountMethod.exact)
            for column, condition in (filters or {}).items():
                operator, _, value = condition.partition(".")
                query = query.filter(column, operator, value)
            page = query.order(order, desc=newest).order("user_id" if view != "growth" else "day")
            try:
                answer = await self._await_reply(page.range(len(found), min(len(found) + PAGE_ROWS, limit) - 1))
            except SchemaMismatch as error:
                hint = "Run the migrations, then sql/admin/views.sql on the project (sql/admin/README.md)."
                raise SchemaMismatch("the project has no views for administrators", hint=hint) from error
            found.extend(answer.data)
            if not answer.data or len(found) >= (answer.count or 0):
                break
        return found

    async def checkpoint(self, user_id: str, days: int) -> AsyncIterator[AdminStep]:
        """Fold what every device seen in the last `days` holds, step by step."""
        done = False
        while not done:
            value = await self._call(
                "ai_memory_admin_checkpoint", {"p_user": user_id, "p_days": days, "p_most": STEP_EVENTS}
            )
            told = _convert_reply(value, _CheckpointReply)
            done = told.done
            yield AdminStep(told.folded, told.done, told.held_by)

    async def prune(self, user_id: str) -> AsyncIterator[AdminStep]:
        """Delete the rows that a checkpoint holds, step by step."""
        deleted = STEP_EVENTS
        while deleted == STEP_EVENTS:
            value = await self._call("ai_memory_admin_prune", {"p_user": user_id, "p_most": STEP_EVENTS})
            deleted = _convert_reply(value, int)
            yield AdminStep(deleted, done=deleted < STEP_EVENTS)

    async def purge(self, user_id: str, *, account: bool) -> AsyncIterator[AdminStep]:
        """Erase everything of a user, step by step; with `account` the user himself as well."""
        done = False
        while not done:
            value = await self._call(
                "ai_memory_admin_purge", {"p_user": user_id, "p_account": account, "p_most": STEP_EVENTS}
            )
            told = _convert_reply(value, _PurgeReply)
            done = told.done
            yield AdminStep(told.events + told.folded, told.done)

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
    """A lost login, in the words of somebody who never had one."""
    if isinstance(error, LoginRequired):
        return Forbidden("the project does not accept the secret key", hint="Check the key and the project's address.")
    return error


def _convert_reply(value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CloudUnavailable("the answer is not one of our functions for administrators") from error
