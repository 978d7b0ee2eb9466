"""A project of its own: database, API and gateway, for as long as a block lasts."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from tests.cloud.database import pglite, postgres
from tests.cloud.gateway import Gateway
from tests.cloud.node_server import Engine, Grants, NodeServer, Project
from tests.cloud.prerequisites import MIGRATIONS, LocalCloudError
from tests.cloud.realtime import Realtime

JWT_EXPIRY = 3600  # seconds, as a hosted project has it


@dataclass(frozen=True)
class Database:
    """The database, of either engine. Without a URL it is reached through the API only."""

    engine: Engine
    location: str
    url: str | None
    pids: tuple[int, ...]
    temporary: str = ""


class LocalCloud:
    """`async with LocalCloud.start() as cloud:`; the attributes are all that a client needs."""

    def __init__(self, database: Database, project: Project, migrations: Path, lite: NodeServer) -> None:
        self._database = database
        self._project = project
        self._migrations = migrations
        self._front = Gateway(_realtime(database, project))
        self._lite: NodeServer | None = lite

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        engine: Engine = "postgres",
        *,
        migrations: Path = MIGRATIONS,
        jwt_expiry: int = JWT_EXPIRY,
        grants: Grants = "classic",
    ) -> AsyncIterator[Self]:
        """Start a project.

        `jwt_expiry`: seconds that an access token is valid; few, for tests of expired tokens.
        `grants`: classic gives every new table to everybody, so a missing REVOKE shows; explicit gives nothing, so a
        missing GRANT shows. Hosted projects come in both kinds.
        """
        async with AsyncExitStack() as stack:
            lite = await NodeServer.launch()  # first, because it can get ready beside the database
            stack.push_async_callback(lite.stop)
            database = await stack.enter_async_context(_database(engine))
            cloud = cls(database, Project.new(jwt_expiry=jwt_expiry, grants=grants), migrations, lite)
            stack.push_async_callback(cloud._close)
            await cloud._serve(lite)
            yield cloud

    @property
    def url(self) -> str:
        return self._front.url

    @property
    def publishable_key(self) -> str:
        return self._project.publishable_key

    @property
    def secret_key(self) -> str:
        return self._project.secret_key

    @property
    def jwt_secret(self) -> str:
        """The HS256 key of tokens, for tokens that Auth would not issue."""
        return self._project.jwt_secret

    @property
    def database_url(self) -> str | None:
        """The superuser's URL; None for PGlite, which accepts no connections."""
        return self._database.url

    @property
    def pids(self) -> tuple[int, ...]:
        """All processes of this cloud."""
        return self._database.pids + ((self._lite.child.pid,) if self._lite else ())

    async def start_http(self) -> None:
        """Start the API again at the same URL, with new migrations applied."""
        if self._lite is None:
            self._lite = await NodeServer.launch()
            await self._serve(self._lite)

    async def stop_http(self) -> None:
        """Stop the API: connections are reset, new ones refused; the data stay."""
        await self._front.stop_accepting()
        if self._lite is not None:
            await self._lite.stop()
            self._lite = None

    async def create_user(self, email: str, password: str) -> str:
        """Sign up; the user's id."""
        async with httpx.AsyncClient(headers={"apikey": self.publishable_key}, trust_env=False) as client:
            answer = await client.post(f"{self.url}/auth/v1/signup", json={"email": email, "password": password})
        if answer.status_code != httpx.codes.OK:
            raise LocalCloudError(f"sign-up of {email} failed: {answer.status_code} {answer.text}")
        session: dict[str, Any] = answer.json()
        return str(session["user"]["id"])

    async def reload_schema(self) -> None:
        """Make the API see new tables at once; by itself it would notice a moment later."""
        async with httpx.AsyncClient(trust_env=False) as client:
            (await client.post(f"{self.url}/_local/reload")).raise_for_status()

    async def _serve(self, lite: NodeServer) -> None:
        database = self._database
        await self._front.open(
            await lite.serve(
                database.engine, database.location, self._project, self._migrations, temporary=database.temporary
            )
        )

    async def _close(self) -> None:
        await self.stop_http()
        await self._front.close()


def _realtime(database: Database, project: Project) -> Realtime | None:
    """None on PGlite, whose one connection lite has."""
    if database.url is None:
        return None
    return Realtime(database.url, keys={project.publishable_key, project.secret_key}, jwt_secret=project.jwt_secret)


@asynccontextmanager
async def _database(engine: Engine) -> AsyncIterator[Database]:
    if engine == "pglite":
        async with pglite.directory() as directory:
            yield Database(engine, str(directory / "data"), None, (), temporary=str(directory))
    else:
        async with postgres.running_server() as server:
            yield Database(engine, server.url, server.url, server.pids)
