-- Tables of xiaobai-memory, closed from birth.
--
-- Decided here:
--   * A device belongs to its user: the key is (user_id, device_id), never device_id alone, because two accounts may
--     use one machine. Events and documents point at that pair by foreign key.
--   * Events are numbered per user, densely, so that a reader proves it missed nothing by `seq = cursor + 1`.
--     The head row holds the last number; whoever numbers holds its row lock until commit (see ..._sync.sql).
--   * Every unique key of ai_memory_events contains user_id and nothing points at the table, so it can become a hash
--     partition (by user_id) of a larger table without rewriting a row.
--   * Sizes are checked twice: by the functions, which name the culprit, and by the constraints below, which hold for
--     everybody, the service role and the SQL editor included.
--   * A hosted Supabase project grants ALL on every new table to anon, authenticated and service_role. Each table
--     takes that back in the same file that creates it; ..._access.sql then grants what is needed.

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
    primary key (user_id, device_id),
    constraint ai_memory_devices_sizes check (
        char_length(device_id) between 1 and 128
        and char_length(replica_id) between 1 and 128
        and char_length(name) <= 200
        and char_length(platform) <= 100
        and char_length(app_version) <= 100
        and char_length(public_key) <= 500
    )
);
comment on table public.ai_memory_devices is 'The devices of a user: name, key, live replica, last seen, revoked.';

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
    ts text not null, -- as the device wrote it: it is data, not an order
    type text not null,
    payload jsonb not null,
    hlc text not null,
    origin text not null,
    local_date text,
    utc_offset integer, -- minutes east of UTC
    extra jsonb not null default '{}', -- envelope fields this version does not know, value for value
    bytes integer not null, -- of the event as JSON text: pages are cut by it without reading payloads
    server_ts timestamptz not null,
    forgotten_at timestamptz, -- when the payload was blanked; the numbered row stays, a missing one would be a hole
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
);
comment on table public.ai_memory_events is 'Append-only log of a user, numbered densely. '
    'Written by ai_memory_sync only.';

create table public.ai_memory (
    id text primary key default gen_random_uuid()::text,
    device_id text not null,
    user_id uuid not null default auth.uid() references auth.users (id) on delete cascade,
    content text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    replica_id text, -- null, like the next, when somebody else than ai_memory_sync wrote the content
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

alter table public.ai_memory_heads enable row level security;
alter table public.ai_memory_devices enable row level security;
alter table public.ai_memory_events enable row level security;
alter table public.ai_memory enable row level security;

revoke all on table
    public.ai_memory_heads, public.ai_memory_devices, public.ai_memory_events, public.ai_memory
from public, anon, authenticated, service_role;
