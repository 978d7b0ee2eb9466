-- ai_memory_events in sixteen hash partitions by user_id.
--
-- Decided here, and why:
--   * Now, not later. Taking the existing table in as the only partition of a larger one (modulus 1) costs nothing, but
--     it also gives nothing: no second partition can stand beside it, so the first real split rewrites every row. That
--     rewrite is cheapest on the day a project is small, which is today: 600,000 rows take seconds (sql/README.md).
--   * What it gives: sixteen smaller trees to descend, vacuum and reindex, several at a time and none of them for long;
--     tables that stay below a size at which an index can no longer be made again in a maintenance window. What it
--     costs: planning looks at the parent as well, a user's events live in one partition whatever their number, and
--     the unique keys must hold user_id (they did from the beginning).
--   * Sixteen, and no more: a plan that is made once for every user locks all partitions and their indexes, and
--     PostgreSQL up to 17 holds few locks without the shared table. Every query of ours names its user, so its plan
--     holds one partition (the test of a million events reads the plans).
--   * The partitions live in ai_memory_private: the API cannot see them, nobody has a grant on them, and they have
--     row-level security without a policy, in case somebody grants one. Row-level security, policies and grants of
--     the parent are what a query through the parent obeys.
--   * The move is one transaction, like every migration: killed in the middle, it has not happened. Calls that push
--     meanwhile wait for the lock, give up after 4 s with a retryable error and come again.
--   * Functions whose signature names the row type are dropped and made again, word for word: their type is the old
--     table's. ai_memory_sync keeps its name and its grants.

set local statement_timeout = 0; -- a large project takes longer than the two minutes of the SQL editor's role

drop function ai_memory_private.event_rows(uuid, text, text, jsonb);
drop function ai_memory_private.push(uuid, text, text, jsonb, bigint);

alter table public.ai_memory_events set schema ai_memory_private; -- frees its name and those of its indexes
create table public.ai_memory_events (
    like ai_memory_private.ai_memory_events including defaults including constraints including comments,
    primary key (user_id, seq),
    unique (user_id, event_id),
    unique (user_id, replica_id, replica_seq),
    foreign key (user_id, device_id) references public.ai_memory_devices (user_id, device_id) on delete cascade
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

alter table public.ai_memory_events enable row level security;
revoke all on table public.ai_memory_events from public, anon, authenticated, service_role;

create policy ai_memory_events_read on public.ai_memory_events
for select to authenticated using ((select auth.uid()) = user_id);

create policy ai_memory_events_named on public.ai_memory_events as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

grant select on table public.ai_memory_events to authenticated, service_role;

insert into public.ai_memory_events select * from ai_memory_private.ai_memory_events;
drop table ai_memory_private.ai_memory_events;

-- As in ..._ai_memory_sync.sql.
create function ai_memory_private.event_rows(p_user uuid, p_device_id text, p_replica_id text, p_events jsonb)
returns setof public.ai_memory_events language sql stable set search_path = '' as $$
    select
        p_user,
        (
            select known.seq from public.ai_memory_events as known
            where known.user_id = p_user and known.event_id = event ->> 'event_id'
        ),
        event ->> 'event_id',
        coalesce(event ->> 'replica_id', p_replica_id),
        (event ->> 'replica_seq')::bigint,
        p_device_id,
        (event ->> 'schema_version')::integer,
        event ->> 'project_id',
        event ->> 'project_path',
        event ->> 'session_id',
        event ->> 'ts',
        event ->> 'type',
        event -> 'payload',
        event ->> 'hlc',
        event ->> 'origin',
        event ->> 'local_date',
        (event ->> 'utc_offset')::integer,
        event - array[
            'event_id', 'replica_id', 'replica_seq', 'device_id', 'schema_version', 'project_id', 'project_path',
            'session_id', 'ts', 'type', 'payload', 'hlc', 'origin', 'local_date', 'utc_offset', 'reach',
            'user_id', 'seq', 'server_ts', 'forgotten_at' -- the server's own words; no body can say them
        ],
        octet_length(event::text),
        date_trunc('milliseconds', clock_timestamp()),
        null::timestamptz
    from (
        select distinct on (element ->> 'event_id') element as event, place
        from jsonb_array_elements(p_events) with ordinality as item (element, place)
        order by element ->> 'event_id', place
    ) as once
    order by place;
$$;

create function ai_memory_private.push(
    p_user uuid, p_device_id text, p_replica_id text, p_events jsonb, p_head bigint,
    out head bigint, out acked jsonb, out error text
) language plpgsql set search_path = '' as $$
declare
    v_batch constant public.ai_memory_events[] := array(
        select r from ai_memory_private.event_rows(p_user, p_device_id, p_replica_id, p_events) as r
    );
begin
    select p_head, '[]'::jsonb, case when bool_or(look.taken_by is not null) then 'device_forked' end
    into head, acked, error
    from (
        select (
            select taken.event_id from public.ai_memory_events as taken
            where taken.user_id = p_user and taken.replica_id = r.replica_id and taken.replica_seq = r.replica_seq
        ) as taken_by
        from unnest(v_batch) as r
        where r.seq is null
    ) as look;
    if error is not null then
        return;
    end if;
    with batch as (
        select * from unnest(v_batch) with ordinality
    ), stored as (
        insert into public.ai_memory_events
        select
            user_id, p_head + row_number() over (order by ordinality), event_id, replica_id, replica_seq, device_id,
            schema_version, project_id, project_path, session_id, ts, type, payload, hlc, origin,
            local_date, utc_offset, extra, bytes, server_ts, forgotten_at
        from batch
        where seq is null
        returning event_id, seq
    )
    select
        p_head + count(stored.seq),
        jsonb_agg(jsonb_build_array(batch.event_id, coalesce(batch.seq, stored.seq)) order by batch.ordinality)
    into head, acked
    from batch
    left join stored on stored.event_id = batch.event_id;
    update public.ai_memory_heads set seq = head where user_id = p_user and seq < head;
end;
$$;

revoke all on function
    ai_memory_private.event_rows(uuid, text, text, jsonb),
    ai_memory_private.push(uuid, text, text, jsonb, bigint)
from public, anon, authenticated, service_role;
