"""The matrix: who may do what with which table, view and function, as a table of expected outcomes.

An outcome is what happened, not what was answered: `reads` names the people whose text was in the answer, `writes`
those whose rows changed (in any table), `denied` is SQLSTATE 42501 from a grant or a policy, `refused <kind>` the
same raised by one of our functions. What is not listed is expected to be denied; an object that is not
listed at all is a failure.

Each table is checked in three ways:
  * the roles as they are (`expected`);
  * the policies alone (`expected_of_policies`): the same people after every grant there is was given to them, because
    a hosted project gives them to whatever is created, and one forgotten revoke must not be enough;
  * the grants alone (`GRANTS`): what the catalogue says, column by column, TRUNCATE and the like included.

`expired token`: PostgREST lets none through, so over HTTP everything is `unauthorized`. Directly it is the
second line of defence, a session of the role authenticated without claims.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.integration.sql.connections import Connection, Cursor, Json, become, call, document, event, refusal
from tests.integration.sql.permissions.fixture_rows import LOST, Actor, FixtureRows, rolled_back

DENIED: Final = "denied"
WRITES: Final = ("insert", "plant", "upsert", "update", "give", "delete")
"""plant: insert a row that names another user as its owner. give: hand own rows to another user."""
ROLES: Final = ("public", "anon", "authenticated", "service_role")


# --- what is tried ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSample:
    """How one writes to a table: a row that its constraints accept, and a change worth making."""

    row: Json  # without owner and device
    change: Json
    key: tuple[str, ...]
    owner: str = "user_id"
    has_device: bool = True
    names_owner: bool = True  # an honest insert says whose row it is

    def row_of(self, actor: Actor, scene: FixtureRows, *, new: bool, planted: bool = False) -> Json:
        row = dict(self.row)
        if self.has_device:
            row["device_id"] = actor.new_device if new else actor.device
        if planted:
            row[self.owner] = scene.victim_of(actor).user_id
        elif self.names_owner:
            row[self.owner] = (actor.person or scene.alice).user_id
        return row


_NOW = "2026-02-02T10:00:00Z"
Shapes = Mapping[str, TableSample]
SHAPES: Final[Shapes] = {
    "ai_memory": TableSample(
        {"content": "# new\n"}, {"content": "# changed\n"}, ("user_id", "device_id"), names_owner=False
    ),
    "ai_memory_events": TableSample(
        {
            "seq": 99,
            "event_id": "evt_planted",
            "replica_id": "rep-planted",
            "replica_seq": 99,
            "schema_version": 1,
            "ts": _NOW,
            "type": "exchange_recorded",
            "payload": {"text": "planted"},
            "hlc": "0193a5b2c3d4-0000",
            "origin": "user-typed",
            "bytes": 99,
            "server_ts": _NOW,
        },
        {"payload": {}},
        ("user_id", "seq"),
    ),
    "ai_memory_heads": TableSample({"seq": 99}, {"seq": 99}, ("user_id",), has_device=False),
    "ai_memory_devices": TableSample({"name": "planted"}, {"revoked_at": None, "name": "x"}, ("user_id", "device_id")),
    "ai_memory_checkpoints": TableSample(
        {"through_seq": 99, "from_seq": 99, "through_event": "evt", "events": [{}], "marks": [1], "bytes": 2},
        {"bytes": 1},
        ("user_id", "through_seq"),
        has_device=False,
    ),
    "ai_memory_activity": TableSample(
        {"day": "2026-02-02", "events": 1, "bytes": 1}, {"events": 0}, ("user_id", "day", "device_id")
    ),
    "ai_memory_limits": TableSample(
        {"name": "planted", "value": 1, "about": "x"},
        {"value": 0},
        ("name",),
        owner="name",
        has_device=False,
        names_owner=False,
    ),
    "ai_memory_legacy": TableSample({"content": "planted"}, {"content": ""}, ("legacy_id",), owner="claimed_by"),
    "ai_memory_admin_legacy": TableSample({"id": "planted"}, {"id": "x"}, ("legacy_id",), owner="claimed_by"),
    "ai_memory_admin_activity": TableSample(
        {"day": "2026-02-02", "events": 1, "bytes": 1}, {"events": 0}, ("user_id", "day", "device_id")
    ),
}


def _nothing(_scene: FixtureRows, _actor: Actor) -> Json:
    return {}


def _alice(scene: FixtureRows, _actor: Actor) -> Json:
    return {"p_user": scene.alice.user_id}


def _device(_scene: FixtureRows, actor: Actor) -> Json:
    return {"p_device_id": actor.device}


def _replica(scene: FixtureRows, actor: Actor) -> Json:
    return _device(scene, actor) | {"p_replica_id": f"rep-{actor.device}"}


def _sync(scene: FixtureRows, actor: Actor) -> Json:
    """Everybody pushes an id that alice has, without its payload, and a document."""
    name, device = scene.alice.event_id(1), actor.device
    pushed = event(50, event_id=name, device_id=device, replica=f"rep-{device}", payload={})
    return _replica(scene, actor) | {"p_events": [pushed], "p_snapshot": document("# newer\n", 9)}


# Aimed at alice by every caller. In this order: what gives bob an event of her id comes after what looks for one, and
# what ends a device or an account comes last.
CALLS: Final[Mapping[str, Callable[[FixtureRows, Actor], Json]]] = {
    "ai_memory_schema_version": _nothing,
    "ai_memory_list_devices": _nothing,
    "ai_memory_register_device": lambda scene, actor: _replica(scene, actor) | {"p_platform": "linux"},
    "ai_memory_forget": lambda scene, actor: (
        _device(scene, actor) | {"p_event_ids": [scene.alice.event_id(n) for n in (1, 4)]}
    ),
    "ai_memory_sync": _sync,
    "ai_memory_rename_device": lambda scene, actor: _device(scene, actor) | {"p_name": "mine now"},
    "ai_memory_report": lambda scene, actor: _device(scene, actor) | {"p_codes": {"22023": 1}},
    "ai_memory_session_is_open": _nothing,
    "ai_memory_session_may_write": _device,
    "ai_memory_revoke_device": _device,
    "ai_memory_revoke": lambda _, actor: {"p_device_id": LOST if actor.device == LOST else "old"},
    "ai_memory_admin_checkpoint": _alice,
    "ai_memory_admin_prune": _alice,
    "ai_memory_admin_match_legacy": _nothing,
    "ai_memory_admin_claim_legacy": lambda scene, _: {"p_legacy_id": scene.stray, "p_user": scene.alice.user_id},
    "ai_memory_admin_purge": _alice,
    "ai_memory_admin_set_limit": lambda _scene, _actor: {"p_name": "devices", "p_value": 100},
    "ai_memory_admin_schedule_folding": _nothing,
}

# --- what is expected ---------------------------------------------------------------------------------------

Expected = Mapping[str, Mapping[str, str]]  # actor → verb → outcome; what is missing is denied

_READ_BY_ALL: Final = {"service role": {"select": "reads everybody's"}}
_OWN: Final = {"select": "reads own"}
_CLOSED: Final = {"select": "reads nothing"}
_READ_BY_OWNER: Final = _READ_BY_ALL | {
    "owner": _OWN,
    "other user": _OWN,
    "revoked device": _OWN,  # the token is the account's; see sql/README.md
    "session of a revoked device": _CLOSED,
    "anonymous user": _CLOSED,
    "expired token": _CLOSED,
}
_DOCUMENT: Final = dict.fromkeys(("insert", "upsert", "update"), "writes own")
_COUNTED: Final = {"service role": {"select": "reads numbers"}}


def _for_users(outcome: str, **actors: str) -> Expected:
    """A function for signed-in people; `actors` say what differs."""
    told = {
        "owner": outcome,
        "other user": outcome,
        "revoked device": "refused device_revoked",
        "session of a revoked device": "refused device_revoked",
        "anonymous user": "refused anonymous_user",
        "expired token": "refused not_signed_in",
    } | {name.replace("_", " "): differs for name, differs in actors.items()}
    return {name: {"call": said} for name, said in told.items()}


def _for_admins(outcome: str) -> Expected:
    return {"service role": {"call": outcome}}


EXPECTED: Final[Mapping[str, Expected]] = {
    "ai_memory": _READ_BY_OWNER
    | {
        "owner": _OWN | _DOCUMENT,
        "other user": _OWN | _DOCUMENT,
        "revoked device": _OWN | {"update": "writes nothing"},
        "session of a revoked device": _CLOSED | {"update": "writes nothing"},
        "anonymous user": _CLOSED | {"update": "writes nothing"},
        "expired token": _CLOSED | {"update": "writes nothing"} | dict.fromkeys(("insert", "upsert"), "error 23502"),
    },
    "ai_memory_events": _READ_BY_ALL,
    "ai_memory_heads": _READ_BY_OWNER,
    "ai_memory_devices": _READ_BY_OWNER,
    "ai_memory_checkpoints": _READ_BY_ALL,
    "ai_memory_activity": _READ_BY_ALL,
    "ai_memory_limits": _COUNTED,
    "ai_memory_legacy": _READ_BY_ALL,
    "ai_memory_admin_legacy": _READ_BY_ALL,
    "ai_memory_admin_users": _READ_BY_ALL,
    "ai_memory_admin_devices": _READ_BY_ALL,
    "ai_memory_admin_activity": _READ_BY_ALL,
    "ai_memory_admin_growth": _COUNTED,
    "ai_memory_admin_stale": _READ_BY_ALL,
    "ai_memory_admin_quarantine": _READ_BY_ALL,
    "ai_memory_schema_version": _for_users(
        "reads numbers, writes nothing",
        revoked_device="reads numbers, writes nothing",
        session_of_a_revoked_device="reads numbers, writes nothing",
        anonymous_user="reads numbers, writes nothing",
        expired_token="reads numbers, writes nothing",
    ),
    "ai_memory_session_is_open": _for_users(
        "reads numbers, writes nothing",
        revoked_device="reads numbers, writes nothing",
        session_of_a_revoked_device="reads numbers, writes nothing",
        anonymous_user="reads numbers, writes nothing",
        expired_token="reads numbers, writes nothing",
    ),
    "ai_memory_session_may_write": _for_users(
        "reads numbers, writes nothing",
        revoked_device="reads numbers, writes nothing",
        session_of_a_revoked_device="reads numbers, writes nothing",
        anonymous_user="reads numbers, writes nothing",
        expired_token="reads numbers, writes nothing",
    ),
    "ai_memory_list_devices": _for_users(
        "reads own, writes nothing",
        revoked_device="reads own, writes nothing",
    ),
    "ai_memory_register_device": _for_users("reads own, writes own"),
    "ai_memory_sync": _for_users("reads own, writes own"),
    "ai_memory_rename_device": _for_users("reads nothing, writes own"),
    "ai_memory_report": _for_users("reads nothing, writes own"),
    "ai_memory_forget": _for_users("reads numbers, writes own", other_user="reads numbers, writes nothing"),
    "ai_memory_revoke_device": _for_users("reads nothing, writes own", revoked_device="reads nothing, writes nothing"),
    "ai_memory_revoke": _for_users("reads numbers, writes own", revoked_device="reads numbers, writes nothing"),
    "ai_memory_admin_checkpoint": _for_admins("reads alice's, writes alice's"),
    "ai_memory_admin_prune": _for_admins("reads numbers, writes alice's"),
    "ai_memory_admin_match_legacy": _for_admins("reads numbers, writes nobody's"),
    "ai_memory_admin_claim_legacy": _for_admins("reads numbers, writes alice's and nobody's"),
    "ai_memory_admin_purge": _for_admins("reads numbers, writes alice's"),
    "ai_memory_admin_set_limit": _for_admins("reads numbers, writes nothing"),
    "ai_memory_admin_schedule_folding": _for_admins("reads numbers, writes nothing"),
}

# Where every grant was given, the policies of the tables still say this; tables without a policy stay shut.
_NOTHING: Final = {"select": "reads nothing"} | dict.fromkeys(("update", "give", "delete"), "writes nothing")
_REGISTERED: Final = ("owner", "other user", "revoked device")
_SHUT: Final = dict.fromkeys(
    (*_REGISTERED, "session of a revoked device", "anon key", "anonymous user", "expired token"), _NOTHING
)
_OPEN: Final = _SHUT | dict.fromkeys(_REGISTERED, _NOTHING | _OWN)
# A row is filled in by a trigger before policies see it; without a user it cannot be, and heads have no other column.
_NAMELESS: Final = dict.fromkeys(("insert", "upsert"), "error 23502")

EXPECTED_OF_POLICIES: Final[Mapping[str, Expected]] = {
    **dict.fromkeys(("ai_memory_events", "ai_memory_heads", "ai_memory_devices"), _OPEN),
    **dict.fromkeys(("ai_memory_checkpoints", "ai_memory_activity", "ai_memory_legacy", "ai_memory_limits"), _SHUT),
    "ai_memory": _OPEN
    | {
        "owner": _NOTHING | _OWN | _DOCUMENT | {"give": "refused identity_fixed"},
        "other user": _NOTHING | _OWN | _DOCUMENT | {"give": "refused identity_fixed"},
        "anon key": _NOTHING | _NAMELESS,
        "expired token": _NOTHING | _NAMELESS,
    },
}

_ALL_READ: Final = {"authenticated": "SELECT", "service_role": "SELECT"}
_ADMINS_READ: Final = {"service_role": "SELECT"}
_WRITABLE: Final = "INSERT(content), INSERT(device_id), INSERT(updated_at)"
GRANTS: Final[Mapping[str, Mapping[str, str]]] = {
    **{name: _ADMINS_READ for name, who in EXPECTED.items() if who in (_READ_BY_ALL, _COUNTED)},
    **dict.fromkeys(("ai_memory_heads", "ai_memory_devices"), _ALL_READ),
    "ai_memory": _ALL_READ | {"authenticated": f"{_WRITABLE}, SELECT, {_WRITABLE.replace('INSERT', 'UPDATE')}"},
    **{name: {"authenticated": "EXECUTE"} for name in CALLS if "admin" not in name},
    **{name: {"service_role": "EXECUTE"} for name in CALLS if "admin" in name},
}


# --- trying -------------------------------------------------------------------------------------------------


class Check(NamedTuple):
    actor: Actor
    verb: str
    subject: str  # a table, view or function

    def __str__(self) -> str:
        return f"{self.actor.name}: {self.verb} {self.subject}"


class AccessPath(Protocol):
    def attempt(self, check: Check) -> str:
        """What came of it."""
        ...


@dataclass(frozen=True)
class Catalogue:
    """What schema public holds of ours; views that nothing can be written through are `views`."""

    tables: tuple[str, ...]
    writable: tuple[str, ...]
    views: tuple[str, ...]
    functions: tuple[str, ...]

    @classmethod
    def read(cls, cursor: Cursor) -> "Catalogue":
        cursor.execute(_RELATIONS)
        found = cursor.fetchall()
        cursor.execute(_FUNCTIONS)
        return cls(
            tables=tuple(name for name, kind, _ in found if kind in "rp"),
            writable=tuple(name for name, kind, writable in found if kind not in "rp" and writable),
            views=tuple(name for name, kind, writable in found if kind not in "rp" and not writable),
            functions=tuple(name for (name,) in cursor.fetchall()),
        )

    def __iter__(self) -> Iterator[str]:
        return iter((*self.tables, *self.writable, *self.views, *self.functions))

    def checks(self, actors: Iterable[Actor]) -> Iterator[Check]:
        """In an order in which one may also commit each: reading, writing, deleting, calling."""
        for actor in actors:
            yield from (Check(actor, "select", name) for name in (*self.tables, *self.writable, *self.views))
            yield from (Check(actor, verb, name) for verb in WRITES for name in (*self.tables, *self.writable))
            yield from (Check(actor, "call", name) for name in sorted(self.functions, key=list(CALLS).index))

    def checks_of_policies(self, actors: Iterable[Actor]) -> Iterator[Check]:
        """Of those who obey policies, on what has them."""
        people = [actor for actor in actors if actor.role != "service_role"]
        return (check for check in self.checks(people) if check.subject in self.tables)


_RELATIONS = """
    select relname, relkind::text, pg_relation_is_updatable(oid, false) <> 0 from pg_class
    where relnamespace = 'public'::regnamespace and starts_with(relname, 'ai_memory')
        and relkind in ('r', 'p', 'v', 'm', 'f')
    order by 1
"""
_FUNCTIONS = """
    select proname from pg_proc
    where pronamespace = 'public'::regnamespace and starts_with(proname, 'ai_memory') order by 1
"""


def expected(check: Check) -> str:
    return EXPECTED[check.subject].get(check.actor.name, {}).get(check.verb, DENIED)


def expected_of_policies(check: Check) -> str:
    return EXPECTED_OF_POLICIES[check.subject].get(check.actor.name, {}).get(check.verb, DENIED)


def failures(
    access: AccessPath, checks: Iterable[Check], on_progress: Callable[[Check], str] = expected
) -> Iterator[str]:
    for check in checks:
        outcome, wanted = access.attempt(check), on_progress(check)
        if outcome != wanted:
            yield f"{check}: expected {wanted}, but {outcome}"


def owners_of(names: set[str], scene: FixtureRows, actor: Actor, *, rows: bool = False) -> str:
    """`rows`: some rows were returned."""
    if not names:
        return "numbers" if rows else "nothing"
    if actor.person is not None and names == {actor.person.name}:
        return "own"
    if names >= {person.name for person in scene.people}:
        return "everybody's"
    return " and ".join(f"{name}'s" for name in sorted(names))


def snapshot_rows(
    cursor: Cursor, catalogue: Catalogue, scene: FixtureRows, shapes: Shapes = SHAPES
) -> set[tuple[str, str, str]]:
    """Every row of every table: the table, its owner's name, a digest. Asked as the superuser."""
    named = {person.user_id: person.name for person in scene.people} | {"": "nobody"}
    parts = [
        sql.SQL("select {}, coalesce(({})::text, ''), md5(t::text) from public.{} as t").format(
            sql.Literal(table), sql.Identifier(shapes[table].owner), sql.Identifier(table)
        )
        for table in catalogue.tables
    ]
    cursor.execute(sql.SQL(" union all ").join(parts))
    return {(table, named.get(owner, "a stranger"), digest) for table, owner, digest in cursor.fetchall()}


class DirectAccess:
    """As the role, with the claims, each attempt undone. `all_granted` leaves the policies alone to guard tables."""

    def __init__(
        self, connection: Connection, scene: FixtureRows, *, all_granted: bool = False, shapes: Shapes = SHAPES
    ) -> None:
        self._shapes = shapes
        self._connection = connection
        self._scene = scene
        with rolled_back(connection) as cursor:
            become(cursor, "none", None)
            self.catalogue = Catalogue.read(cursor)
            self._before = snapshot_rows(cursor, self.catalogue, scene, shapes)
        self._all_granted = all_granted

    def attempt(self, check: Check) -> str:
        with rolled_back(self._connection) as cursor:
            become(cursor, "none", None)
            if self._all_granted:
                cursor.execute(sql.SQL("grant all on public.{} to anon, authenticated").format(_name(check)))
            readable = self._readable(cursor, check) if check.verb == "select" else []
            try:
                become(cursor, check.actor.role, check.actor.claims)
                read = self._do(cursor, check, readable)
            except psycopg.Error as error:
                return outcome_of(error)
            wrote = self._written(cursor, check.actor)
        return {"select": f"reads {read}", "call": f"reads {read}, writes {wrote}"}.get(check.verb, f"writes {wrote}")

    def _do(self, cursor: Cursor, check: Check, readable: list[str]) -> str:
        if check.verb == "call":
            arguments = CALLS[check.subject](self._scene, check.actor)
            answer = call(cursor, check.subject, **{name: _bound(value) for name, value in arguments.items()})
            said = [] if answer in (None, "") else [answer]
        elif check.verb == "select":
            columns = sql.SQL(", ").join(map(sql.Identifier, readable)) if readable else sql.SQL("1")
            cursor.execute(sql.SQL("select row({})::text from public.{}").format(columns, _name(check)))
            said = [row for (row,) in cursor.fetchall()]
        else:
            cursor.execute(*statement(check, self._scene, self._shapes[check.subject]))
            said = []
        return owners_of(self._scene.names_in(str(said)), self._scene, check.actor, rows=bool(said))

    def _readable(self, cursor: Cursor, check: Check) -> list[str]:
        """The columns that the actor may read."""
        cursor.execute(
            "select attname from pg_attribute where attrelid = format('public.%%I', %s::text)::regclass and attnum > 0 "
            "and not attisdropped and has_column_privilege(%s, attrelid, attnum, 'select')",
            [check.subject, check.actor.role],
        )
        return [name for (name,) in cursor.fetchall()]

    def _written(self, cursor: Cursor, actor: Actor) -> str:
        become(cursor, "none", None)
        changed = snapshot_rows(cursor, self.catalogue, self._scene, self._shapes) ^ self._before
        return owners_of({name for _, name, _ in changed}, self._scene, actor)


def outcome_of(error: psycopg.Error) -> str:
    if not isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"error {error.sqlstate}"
    kind = refusal(error)[1].get("kind")
    return f"refused {kind}" if kind else DENIED


def statement(check: Check, scene: FixtureRows, shape: TableSample) -> tuple[sql.Composed, list[Any]]:
    """Without a WHERE if possible: columns in it would have to be readable."""
    actor = check.actor
    only = sql.SQL(" where device_id = {}").format(sql.Literal(LOST))
    where = only if actor.device == LOST and shape.has_device else sql.SQL("")
    if check.verb == "delete":
        return sql.SQL("delete from public.{}{}").format(_name(check), where), []
    if check.verb in {"update", "give"}:
        change = shape.change if check.verb == "update" else {shape.owner: scene.victim_of(actor).user_id}
        places = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(column)) for column in change)
        text = sql.SQL("update public.{} set {}{}").format(_name(check), places, where)
        return text, [_bound(value) for value in change.values()]
    row = shape.row_of(actor, scene, new=check.verb != "upsert", planted=check.verb == "plant")
    columns = [sql.Identifier(column) for column in row]
    text = sql.SQL("insert into public.{} ({}) values ({})").format(
        _name(check), sql.SQL(", ").join(columns), sql.SQL(", ").join([sql.SQL("%s")] * len(row))
    )
    if check.verb == "upsert":
        text += sql.SQL(" on conflict ({}) do update set {}").format(
            sql.SQL(", ").join(map(sql.Identifier, shape.key)),
            sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(column) for column in columns),
        )
    return text, [_bound(value) for value in row.values()]


def _bound(value: Any) -> Any:
    """marks is the one array that is no JSON."""
    return Jsonb(value) if isinstance(value, dict) or (isinstance(value, list) and value != [1]) else value


def _name(check: Check) -> sql.Identifier:
    return sql.Identifier(check.subject)


# --- grants, as the catalogue has them ----------------------------------------------------------------------

_GRANTED = """
    with granted as (
        select relname as name, (aclexplode(coalesce(relacl, acldefault('r', relowner)))).*, '' as part
        from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')
        union all
        select relname, (aclexplode(attacl)).*, '(' || attname || ')' from pg_attribute
        join pg_class on pg_class.oid = attrelid where relnamespace = 'public'::regnamespace and not attisdropped
        union all
        select proname, (aclexplode(coalesce(proacl, acldefault('f', proowner)))).*, '' from pg_proc
        where pronamespace = 'public'::regnamespace
    )
    select name, coalesce(rolname, 'public'), string_agg(privilege_type || part, ', ' order by privilege_type || part)
    from granted left join pg_roles on pg_roles.oid = grantee
    where starts_with(name, 'ai_memory') and coalesce(rolname, 'public') = any (%s)
    group by 1, 2
"""


def granted(cursor: Cursor) -> dict[tuple[str, str], str]:
    """(object, role) → privileges, as GRANTS spells them."""
    cursor.execute(_GRANTED, [list(ROLES)])
    return {(name, role): privileges for name, role, privileges in cursor.fetchall()}


def wrong_grants(cursor: Cursor, catalogue: Catalogue) -> Iterator[str]:
    found = granted(cursor)
    for name in catalogue:
        for role in ROLES:
            has, wanted = found.get((name, role), ""), GRANTS[name].get(role, "")
            if has != wanted:
                yield f"{role} on {name}: expected {wanted or 'nothing'}, but {has or 'nothing'}"
