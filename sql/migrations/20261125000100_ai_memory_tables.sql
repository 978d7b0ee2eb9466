-- The tables. Each is closed when it is created; ..._access.sql grants what is needed.
--
--   * A device belongs to its user: the key is (user_id, device_id), because two accounts may use one machine.
--   * Events are numbered per user without a gap, so a reader proves by `seq = cursor + 1` that it missed nothing. The
--     head row holds the last number; a call that numbers events holds its row lock until commit (see ..._sync.sql).
--   * ai_memory_events has sixteen hash partitions by user: smaller trees to descend, vacuum and reindex. More would
--     cost: a plan that is made for every user locks all partitions and their indexes. Every query of ours names its
--     user, so its plan holds one partition. The partitions are in ai_memory_private, out of the API's sight, with
--     row-level security and no policy, in case a grant is made by mistake. A query through the parent obeys the
--     parent's policies and grants.
--   * Sizes are checked twice: by the functions, which name the event, and by the constraints, which also hold for the
--     service role and the SQL editor.
--   * A hosted project grants ALL on every new table, function and sequence to anon, authenticated and service_role.
--     Each file takes that back for everything it creates.

create schema ai_memory_private;
comment on schema ai_memory_private is 'xiaobai-memory: inner functions. Not exposed through the API, no grants.';
revoke all on schema ai_memory_private from public;

create table public.ai_memory_heads (
    user_id uuid primary key references auth.users (id) on delete cascade,
    seq bigint not null default 0,
    floor_seq bigint not null default 0,
    epoch text not null default gen_random_uuid()::text,
    constraint ai_memory_heads_order check (floor_seq >= 0 and floor_seq <= seq)
);
comment on table public.ai_memory_heads is 'One row a user: the last number given, the number up to which events were '
    'folded away, and the epoch, which changes when numbers start again.';

create table public.ai_memory_devices (
    user_id uuid not null references auth.users (id) on delete cascade,
    device_id text not null,
    replica_id text, -- the local database that speaks for this device now; null before its first registration
    name text,
    platform text,
    app_version text,
    public_key text,
    created_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    revoked_at timestamptz,
    named_at timestamptz, -- when the user gave the name; null: it is the host name and follows the device
    cursor_seq bigint not null default 0 check (cursor_seq >= 0),
    quarantined integer not null default 0 check (quarantined >= 0),
    quarantine_codes jsonb not null default '{}' check (octet_length(quarantine_codes::text) <= 4096),
    reported_at timestamptz,
    proof_sha256 text constraint ai_memory_devices_proof check (proof_sha256 ~ '^[0-9a-f]{64}$'),
    primary key (user_id, device_id),
    constraint ai_memory_devices_sizes check (
        char_length(device_id) between 1 and 128
        and char_length(replica_id) between 1 and 128
        and char_length(name) <= 200
        and char_length(platform) <= 100
        and char_length(app_version) <= 100
        and char_length(public_key) <= 500
    ),
    -- the one spelling that base64 has for 32 bytes, because keys are compared as text
    constraint ai_memory_devices_public_key check (public_key ~ '^ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$')
);
comment on table public.ai_memory_devices is 'The devices of a user: name, key, live replica, last seen, revoked.';
comment on column public.ai_memory_devices.cursor_seq is 'The last number the device has said it holds.';
comment on column public.ai_memory_devices.quarantine_codes is 'How many set-aside events by SQLSTATE, as the device '
    'last said at reported_at.';
comment on column public.ai_memory_devices.proof_sha256 is 'SHA-256 of the secret that a takeover has to show.';
create unique index ai_memory_devices_keys on public.ai_memory_devices (user_id, public_key);

create table ai_memory_private.sessions (
    user_id uuid not null,
    session_id text not null,
    device_id text not null,
    is_own boolean not null, -- the device that owns the session; the others are former ids of one installation
    bound_at timestamptz not null default now(),
    primary key (user_id, session_id, device_id),
    foreign key (user_id, device_id) references public.ai_memory_devices (user_id, device_id) on delete cascade,
    constraint sessions_sizes check (char_length(session_id) between 1 and 128)
);
create unique index sessions_own on ai_memory_private.sessions (user_id, session_id) where is_own;
create index sessions_devices on ai_memory_private.sessions (user_id, device_id);

create table public.ai_memory_events (
    user_id uuid not null,
    seq bigint not null,
    event_id text not null,
    replica_id text not null,
    replica_seq bigint not null,
    device_id text not null,
    schema_version integer not null,
    project_id text,
    project_path text,
    session_id text,
    ts text not null, -- as the device wrote it: data, not an order
    type text not null,
    payload jsonb not null,
    hlc text not null,
    origin text not null,
    local_date text,
    utc_offset integer, -- minutes east of UTC
    extra jsonb not null default '{}', -- envelope fields that this version does not know, value for value
    bytes integer not null, -- of the event as JSON text: pages are cut by it without reading payloads
    server_ts timestamptz not null,
    forgotten_at timestamptz, -- when the payload was erased; the row stays, because a missing number would be a gap
    primary key (user_id, seq),
    unique (user_id, event_id),
    unique (user_id, replica_id, replica_seq),
    foreign key (user_id, device_id) references public.ai_memory_devices (user_id, device_id) on delete cascade,
    constraint ai_memory_events_numbers check (
        seq > 0 and replica_seq > 0 and schema_version >= 0 and utc_offset between -1440 and 1440
    ),
    constraint ai_memory_events_hlc check (hlc ~ '^[0-9a-f]{12}-[0-9a-f]{4}$'),
    constraint ai_memory_events_local_date check (local_date ~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$'),
    constraint ai_memory_events_json check (jsonb_typeof(payload) = 'object' and jsonb_typeof(extra) = 'object'),
    constraint ai_memory_events_sizes check (
        bytes between 1 and 65536
        and octet_length(payload::text) + octet_length(extra::text) <= 65536
        and char_length(event_id) between 1 and 128
        and char_length(replica_id) between 1 and 128
        and char_length(project_id) <= 256
        and char_length(project_path) <= 4096
        and char_length(session_id) <= 256
        and char_length(ts) between 1 and 64
        and char_length(type) between 1 and 128
        and char_length(origin) between 1 and 32
    )
) partition by hash (user_id);
comment on table public.ai_memory_events is 'Append-only log of a user, numbered densely. '
    'Written by ai_memory_sync only.';

do $$
declare
    v_name text;
begin
    for v_number in 0..15 loop
        v_name := 'ai_memory_events_' || to_char(v_number, 'FM00');
        execute format(
            'create table ai_memory_private.%I partition of public.ai_memory_events '
            'for values with (modulus 16, remainder %s)', v_name, v_number
        );
        execute format('alter table ai_memory_private.%I enable row level security', v_name);
        execute format(
            'revoke all on table ai_memory_private.%I from public, anon, authenticated, service_role', v_name
        );
    end loop;
end;
$$;

create table public.ai_memory_checkpoints (
    user_id uuid not null references auth.users (id) on delete cascade,
    through_seq bigint not null,
    from_seq bigint not null,
    through_event text not null, -- the id at through_seq, for a device whose cursor is there
    events jsonb not null, -- as ai_memory_sync returns them, ascending, without a gap
    marks bigint[] not null, -- of each event_id, and of each replica's number
    bytes integer not null,
    created_at timestamptz not null default now(),
    primary key (user_id, through_seq),
    constraint ai_memory_checkpoints_dense check (
        from_seq between 1 and through_seq and jsonb_array_length(events) = through_seq - from_seq + 1
    )
);
comment on table public.ai_memory_checkpoints is 'Events of a user up to floor_seq, packed; made by '
    'ai_memory_admin_checkpoint.';
create index ai_memory_checkpoints_marks on public.ai_memory_checkpoints using gin (marks) with (fastupdate = off);

create table public.ai_memory (
    id text primary key default gen_random_uuid()::text,
    device_id text not null,
    user_id uuid not null default auth.uid() references auth.users (id) on delete cascade,
    content text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    replica_id text, -- like the next, null if another program than ai_memory_sync wrote the content
    through_replica_seq bigint, -- the content holds the replica's own events up to here
    content_sha256 text,
    unique (user_id, device_id),
    foreign key (user_id, device_id) references public.ai_memory_devices (user_id, device_id) on delete cascade,
    constraint ai_memory_content_size check (octet_length(content) <= 1048576),
    constraint ai_memory_content_sha256 check (content_sha256 ~ '^[0-9a-f]{64}$'),
    constraint ai_memory_through check (through_replica_seq >= 0)
);
comment on table public.ai_memory is 'The document of each device as it left the device: redacted. For admins and for '
    'the app that wrote this table first.';

create table public.ai_memory_activity (
    user_id uuid not null references auth.users (id) on delete cascade,
    day date not null, -- UTC, by the server's clock
    device_id text not null,
    events bigint not null,
    bytes bigint not null,
    erased bigint not null default 0,
    primary key (user_id, day, device_id)
);
comment on table public.ai_memory_activity is 'Events that arrived, by user, UTC day and device.';
create index ai_memory_activity_days on public.ai_memory_activity (day);

create table public.ai_memory_limits (
    name text primary key,
    value bigint not null check (value >= 0),
    about text not null
);
comment on table public.ai_memory_limits is 'What one account may do. Read by the functions; set by admins.';

-- Far above what a person needs: 70 exchanges a day are some 200 events and 0.2 MB, and the log of a year (75,000
-- events, 50 MB) passes in one day. A longer import goes on the next day. A name without a row is not limited.
insert into public.ai_memory_limits (name, value, about) values
('devices', 100, 'devices of an account, revoked ones included'),
('devices_a_day', 20, 'new devices of an account within 24 hours'),
('documents', 100, 'documents of an account, one a device'),
('events_a_day', 200000, 'events that an account sends in a UTC day'),
('bytes_a_day', 268435456, 'bytes of these events'),
('erasures_a_call', 2000, 'events that one call may erase'),
('erasures_a_day', 10000, 'events that an account erases in a UTC day');

alter table public.ai_memory_heads enable row level security;
alter table public.ai_memory_devices enable row level security;
alter table ai_memory_private.sessions enable row level security;
alter table public.ai_memory_events enable row level security;
alter table public.ai_memory_checkpoints enable row level security;
alter table public.ai_memory enable row level security;
alter table public.ai_memory_activity enable row level security;
alter table public.ai_memory_limits enable row level security;

revoke all on table
    public.ai_memory_heads, public.ai_memory_devices, ai_memory_private.sessions, public.ai_memory_events,
    public.ai_memory_checkpoints, public.ai_memory, public.ai_memory_activity, public.ai_memory_limits
from public, anon, authenticated, service_role;
