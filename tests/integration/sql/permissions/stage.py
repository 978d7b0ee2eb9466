"""The scene of the behaviours, and one connection on which all its people call in turn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.integration.sql.connections import Account, Connection, Json, as_role, become, call, event, refusal
from tests.integration.sql.permissions.fixture_rows import FixtureRows, Person


@dataclass(frozen=True)
class Stage:
    """The scene, and one connection on which everybody speaks in turn."""

    admin: Connection
    scene: FixtureRows

    def account_of(self, person: Person) -> Account:
        return Account(self.admin, person.user_id, person.claims())

    @property
    def alice(self) -> Account:
        return self.account_of(self.scene.alice)

    @property
    def bob(self) -> Account:
        return self.account_of(self.scene.bob)

    def laptop(self, person: Person) -> Json:
        return {"device": person.laptop, "replica": f"rep-{person.laptop}"}

    def push(self, *numbers: int, **more: Any) -> Json:
        """Alice's laptop pushes events with these numbers of its own."""
        return self.alice.sync([self.event(n) for n in numbers], **self.laptop(self.scene.alice), **more)

    def event(self, number: int, **changes: Any) -> Json:
        alice = self.scene.alice
        mine = {"event_id": alice.event_id(number), "device_id": alice.laptop, "replica_id": f"rep-{alice.laptop}"}
        return event(number) | mine | changes

    def stored_event(self, number: int, **changes: Any) -> Json:
        """An event of alice's that the server has."""
        return self.event(number, payload={"text": self.scene.alice.word}) | changes

    def value(self, query: str, *parameters: Any) -> Any:
        with self.admin.cursor() as cursor:
            become(cursor, "none", None)
            cursor.execute(query.encode(), parameters)
            row = cursor.fetchone()
        return row[0] if row else None

    def do(self, statement: str, *parameters: Any) -> None:
        with self.admin.cursor() as cursor:
            become(cursor, "none", None)
            cursor.execute(statement.encode(), parameters)

    def as_admin(self, function: str, **arguments: Any) -> Any:
        with as_role(self.admin, "service_role", {"role": "service_role"}) as cursor:
            return call(cursor, function, **arguments)


def refused(kind: str, attempt: Callable[[], Any]) -> None:
    """It raises one of our refusals, of this kind, or any error whose SQLSTATE this is."""
    said = None
    try:
        attempt()
    except psycopg.Error as error:
        said = {error.sqlstate}
        if (error.diag.message_detail or "").startswith("{"):
            said.add(refusal(error)[1]["kind"])
    assert said is not None, f"not refused: {kind}"
    assert kind in said
