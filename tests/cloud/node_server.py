"""The Node process that speaks PostgREST and Auth: `server/main.mjs`, which embeds @supabase/lite."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tests.cloud.child_processes import Child
from tests.cloud.prerequisites import LOOPBACK, SERVER, LocalCloudError, new_secret, node

Engine = Literal["postgres", "pglite"]
Grants = Literal["classic", "explicit"]  # the rights of the API's roles on a new table: all, or none

READY_WITHIN = 60.0  # seconds; PGlite compiles its WASM first, and a loaded CI machine takes its time
MIGRATION_NAME = re.compile(r"(?P<version>\d{14})_(?P<name>.+)\.sql")


@dataclass(frozen=True)
class Project:
    """A project's parameters."""

    publishable_key: str
    secret_key: str
    jwt_secret: str
    jwt_expiry: int  # seconds
    grants: Grants

    @classmethod
    def new(cls, *, jwt_expiry: int = 3600, grants: Grants = "classic") -> Self:
        return cls(
            publishable_key=new_secret("sb_publishable_"),
            secret_key=new_secret("sb_secret_"),
            jwt_secret=new_secret(),
            jwt_expiry=jwt_expiry,
            grants=grants,
        )

    def configuration(self) -> dict[str, Any]:
        return {
            "publishableKey": self.publishable_key,
            "secretKey": self.secret_key,
            "jwtSecret": self.jwt_secret,
            "jwtExpiry": self.jwt_expiry,
            "grants": self.grants,
        }


@dataclass(frozen=True)
class NodeServer:
    """A Node process that is ready to be configured; it takes half a second to start."""

    child: Child

    @classmethod
    async def launch(cls) -> Self:
        return cls(await Child.start("lite", [str(node()), str(SERVER / "main.mjs")]))

    async def serve(
        self, engine: Engine, database: str, project: Project, migrations: Path, *, temporary: str = ""
    ) -> str:
        """Start serving; the URL, for the gateway only. The process deletes `temporary` if its launcher dies."""
        settings = {
            "mode": "serve",
            "temporary": temporary,
            "migrations": read_migrations(migrations),
            "scripts": [
                path.read_text(encoding="utf-8") for path in sorted((migrations.parent / "admin").glob("*.sql"))
            ],
        }
        await self._configure(engine, database, project, settings)
        said = json.loads((await self.child.wait_for_line(r'^\{"(port|error)":', timeout=READY_WITHIN)).string)
        if "error" in said:
            raise LocalCloudError(said["error"])
        return f"http://{LOOPBACK}:{said['port']}"

    async def prepare(self, engine: Engine, database: str) -> None:
        """Create the schemas of a hosted project in an empty database."""
        await self._configure(engine, database, Project.new(), {"mode": "prepare"})
        if await self.child.wait_for_exit(timeout=READY_WITHIN) != 0:
            raise LocalCloudError(f"could not prepare the database:\n{self.child.recent_output()}")

    async def stop(self) -> None:
        await self.child.stop()

    async def _configure(self, engine: Engine, database: str, project: Project, settings: dict[str, Any]) -> None:
        told = {"engine": engine, "database": database, **project.configuration(), **settings}
        await self.child.write_line(json.dumps(told))


async def prepare(engine: Engine, database: str) -> None:
    """Once per template: see `Lite.prepare`."""
    lite = await NodeServer.launch()
    try:
        await lite.prepare(engine, database)
    finally:
        await lite.stop()


def read_migrations(directory: Path) -> list[dict[str, str]]:
    """The migrations in the order of `supabase db push`; none if the directory does not exist."""
    found = []
    for path in sorted(directory.glob("*.sql")):
        named = MIGRATION_NAME.fullmatch(path.name)
        if named is None:
            raise LocalCloudError(f"{path.name}: a migration is called <14 digits>_<name>.sql")
        found.append({**named.groupdict(), "sql": path.read_text(encoding="utf-8")})
    return found
