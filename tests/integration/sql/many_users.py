"""Many users and their events, generated inside the database."""

from dataclasses import dataclass

from psycopg import sql

from tests.integration.sql.connections import Account, Cloud

# Without foreign keys being looked at one by one: they hold by construction.
_CROWD = """
    set session_replication_role = replica;
    insert into auth.users (id) select public.crowd_user(n) from generate_series(1, {users}) as n;
    insert into public.ai_memory_heads (user_id, seq) select public.crowd_user(n), {each}
    from generate_series(1, {users}) as n;
    insert into public.ai_memory_devices (user_id, device_id, replica_id, cursor_seq)
    select public.crowd_user(n), 'd1', 'r1', {each} from generate_series(1, {users}) as n;
    insert into public.ai_memory_events
    select
        public.crowd_user(n), seq, 'evt_' || n || '_' || seq, 'r1', seq, 'd1', 1, 'proj_abcd1234', null, 's1',
        '2026-02-02T10:00:00.000Z', 'exchange_recorded',
        jsonb_build_object('summary', repeat('喜欢简洁的回答。', 4), 'title', md5(n || '/' || seq)),
        '0193a5b2c3d4-0000', 'user-typed', '2026-02-02', 480, '{{}}', 600,
        '2026-01-01'::timestamptz + make_interval(mins => seq::integer), null
    from generate_series(1, {users}) as n cross join generate_series(1, {each}::bigint) as seq;
    insert into public.ai_memory (user_id, device_id, content, replica_id, through_replica_seq, content_sha256)
    select public.crowd_user(n), 'd1', '# ' || n, 'r1', {each}, encode(sha256(convert_to('# ' || n, 'UTF8')), 'hex')
    from generate_series(1, {users}) as n;
    insert into public.ai_memory_activity (user_id, day, device_id, events, bytes)
    select public.crowd_user(n), (now() at time zone 'UTC')::date, 'd1', {each}, 600 * {each}
    from generate_series(1, {users}) as n;
    set session_replication_role = origin;
    analyze;
"""
_USER = """
    create function public.crowd_user(n bigint) returns uuid language sql immutable as $$
        select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid
    $$
"""


@dataclass(frozen=True)
class ManyUsers:
    """`users` accounts of one device, its document and `each` events."""

    cloud: Cloud
    users: int
    each: int

    def insert_users(self) -> None:
        self.cloud.admin.execute(_USER)
        text = sql.SQL(_CROWD).format(users=sql.Literal(self.users), each=sql.Literal(self.each))
        self.cloud.admin.execute(text)

    def account(self, number: int = 77) -> Account:
        user_id = f"00000000-0000-4000-8000-{number:012}"
        return Account(self.cloud.connect(), user_id, {"sub": user_id, "role": "authenticated"})
