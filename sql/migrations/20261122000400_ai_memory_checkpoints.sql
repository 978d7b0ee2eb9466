-- Checkpoints: old events packed a few hundred to a row, so that a user's log may grow for years.
--
-- Decided here, and why:
--   * Nothing is lost by folding. A checkpoint keeps every event word for word, only packed: the payloads of edited and
--     removed entries too, because a device that comes back after months sends edits whose base they are, and devices
--     that merge with another base would never show the same document again. Only forgotten payloads are gone.
--   * So a folded event is served as any other: a cursor below the floor is answered from the checkpoint, with the
--     numbers the events had. Clients of every version work as before, nobody is told to start anew, and `floor` in
--     an answer is the lowest cursor that can be served: 0, unless somebody cut the log by hand. A device whose
--     cursor does not fit (another event stands there) is reset and refetches from that.
--   * floor_seq of the head is the number up to which the rows of ai_memory_events are no longer asked. It is raised
--     in the transaction that packs them, and only past what every device seen in the last days has acknowledged: the
--     checkpoint would serve them as well, but a page of rows is cheaper than a page of it. Removing the rows
--     (..._admin_prune) is another step, which may be killed and repeated at any point.
--   * What a device has acknowledged is the cursor of its call. It is kept in ai_memory_devices together with
--     last_seen_at, at most once a minute, or when it has moved by a thousand: an idle poll writes nothing.
--   * A call that pushes nothing takes no lock, so folding and pruning may pass it between its reading of the head and
--     its reading of the page. The page then lacks rows, the client sees the hole and asks again.
--   * Known ids stay known: a folded event that is sent again is acknowledged with its number, and its replica's
--     number is still taken. Both are looked up by 64-bit marks (of SHA-256: hashtext may change with the version of
--     PostgreSQL) in one GIN index and then compared for real. The planner does not know what it costs to unpack an
--     array, so the look-up forbids it the sequential scan.
--   * Look-ups of events are in plpgsql: its statements are planned with the values they are called with, so the plan
--     holds one partition. A function in SQL is planned for any user, over all sixteen, and again at every call: the
--     poll took three times as long. The same goes for what is called once a row (told, rfc3339).
--   * The last checkpoint row is opened and filled while it is small, so that folding every night does not leave a
--     row a night. There are no old checkpoints to remove: each event stands in one row.
--   * Forgetting is an event, `payload_forgotten` with {"event_ids": [...]}. The server blanks what it names when it
--     arrives, so that a wish made offline waits in the outbox like everything else. ai_memory_forget stays for
--     programs that want it at once. Both hold the head row: an event cannot be packed while it is being blanked.

alter table public.ai_memory_devices add column cursor_seq bigint not null default 0 check (cursor_seq >= 0);
comment on column public.ai_memory_devices.cursor_seq is 'The last number the device has said it holds.';

create table public.ai_memory_checkpoints (
    user_id uuid not null references auth.users (id) on delete cascade,
    through_seq bigint not null,
    from_seq bigint not null,
    through_event text not null, -- the id at through_seq, for the cursor of a device that stands there
    events jsonb not null, -- as ai_memory_sync hands them out, ascending, without a gap
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
alter table public.ai_memory_checkpoints enable row level security;
revoke all on table public.ai_memory_checkpoints from public, anon, authenticated, service_role;
grant select on table public.ai_memory_checkpoints to service_role;

-- --- looking into checkpoints -------------------------------------------------------------------------------

create function ai_memory_private.mark(p_kind text, p_value text) returns bigint
language sql immutable set search_path = '' as $$
    select ('x' || encode(substr(sha256(convert_to(p_kind || p_value, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
$$;

create function ai_memory_private.marks_of(p_events jsonb) returns bigint[]
language sql immutable set search_path = '' as $$
    select array_agg(ai_memory_private.mark(mark.kind, mark.value))
    from jsonb_array_elements(p_events) as event
    cross join lateral (
        values ('id/', event ->> 'event_id'), (event ->> 'replica_seq' || '/', event ->> 'replica_id')
    ) as mark (kind, value);
$$;

-- All events of the user's checkpoint rows that hold one of the marks. The caller compares.
create function ai_memory_private.folded(p_user uuid, p_marks bigint[]) returns setof jsonb
language sql stable rows 500 set search_path = '' set enable_seqscan = off as $$
    with touched as materialized (
        select user_id, events from public.ai_memory_checkpoints where marks && p_marks
    )
    select event from touched cross join lateral jsonb_array_elements(events) as event where user_id = p_user;
$$;

-- The lowest cursor that can be served.
create function ai_memory_private.lowest(p_head public.ai_memory_heads) returns bigint
language plpgsql stable set search_path = '' as $$
begin
    if p_head.floor_seq = 0 then
        return 0;
    end if;
    return coalesce(
        (
            select from_seq - 1 from public.ai_memory_checkpoints
            where user_id = p_head.user_id order by through_seq limit 1
        ),
        p_head.floor_seq
    );
end;
$$;

create function ai_memory_private.event_at(p_head public.ai_memory_heads, p_seq bigint) returns text
language plpgsql stable set search_path = '' as $$
begin
    if p_seq > p_head.floor_seq then
        return (select event_id from public.ai_memory_events where user_id = p_head.user_id and seq = p_seq);
    end if;
    return (
        select case when through_seq = p_seq then through_event
            else events -> (p_seq - from_seq)::integer ->> 'event_id' end
        from public.ai_memory_checkpoints
        where user_id = p_head.user_id and through_seq >= p_seq order by through_seq limit 1
    );
end;
$$;

create or replace function ai_memory_private.must_reset(
    p_head public.ai_memory_heads, p_after bigint, p_after_event text, p_epoch text
) returns boolean language plpgsql stable set search_path = '' as $$
declare
    v_lowest constant bigint := ai_memory_private.lowest(p_head);
begin
    return case
        when p_after > 0 and p_epoch is null then true
        when p_epoch <> p_head.epoch then true
        when p_after > p_head.seq or p_after < v_lowest then true
        when p_after = v_lowest then false
        else p_after_event is distinct from ai_memory_private.event_at(p_head, p_after)
    end;
end;
$$;

-- --- handing out --------------------------------------------------------------------------------------------

create or replace function ai_memory_private.rfc3339(p_time timestamptz) returns text
language plpgsql stable set search_path = '' as $$
begin
    return to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end;
$$;

create function ai_memory_private.told(p_event public.ai_memory_events) returns jsonb
language plpgsql stable set search_path = '' as $$
begin
    return p_event.extra || jsonb_build_object(
        'seq', p_event.seq, 'server_ts', ai_memory_private.rfc3339(p_event.server_ts),
        'event_id', p_event.event_id, 'replica_id', p_event.replica_id, 'replica_seq', p_event.replica_seq,
        'device_id', p_event.device_id, 'schema_version', p_event.schema_version,
        'project_id', p_event.project_id, 'project_path', p_event.project_path, 'session_id', p_event.session_id,
        'ts', p_event.ts, 'type', p_event.type, 'payload', p_event.payload, 'hlc', p_event.hlc,
        'origin', p_event.origin, 'reach', 'cloud',
        'local_date', p_event.local_date, 'utc_offset', p_event.utc_offset
    ) || case when p_event.forgotten_at is null then '{}' else
        jsonb_build_object('forgotten_at', ai_memory_private.rfc3339(p_event.forgotten_at)) end;
end;
$$;

-- A page of the checkpoint, at most to its end. Three rows hold more than a page may.
create function ai_memory_private.pull_folded(p_user uuid, p_after bigint, p_limit integer) returns jsonb
language sql stable set search_path = '' as $$
    with near as materialized (
        select events from public.ai_memory_checkpoints
        where user_id = p_user and through_seq > p_after order by through_seq limit 3
    ), page as (
        select
            item.event, (item.event -> 'seq')::bigint as seq,
            sum(octet_length(item.event::text)) over (order by (item.event -> 'seq')::bigint rows unbounded preceding)
                - octet_length(item.event::text) as bytes_before
        from near cross join lateral jsonb_array_elements(near.events) as item (event)
        where (item.event -> 'seq')::bigint > p_after
        order by seq
        limit p_limit
    )
    select coalesce(jsonb_agg(event order by seq), '[]') from page where bytes_before < 1048576;
$$;

-- --- numbering: a folded event is a known event ----------------------------------------------------------------

-- As in ..._ai_memory_partitions.sql; the number of a known id may also stand in the checkpoint.
create or replace function ai_memory_private.event_rows(
    p_user uuid, p_device_id text, p_replica_id text, p_events jsonb
) returns setof public.ai_memory_events language plpgsql stable set search_path = '' as $$
begin
    return query
    with once as materialized (
        select distinct on (element ->> 'event_id') element as event, element ->> 'event_id' as id, place
        from jsonb_array_elements(p_events) with ordinality as item (element, place)
        order by element ->> 'event_id', place
    ), folded as materialized (
        select event ->> 'event_id' as id, (event -> 'seq')::bigint as seq
        from ai_memory_private.folded(p_user, array(select ai_memory_private.mark('id/', id) from once)) as event
    )
    select
        p_user,
        coalesce(
            (
                select known.seq from public.ai_memory_events as known
                where known.user_id = p_user and known.event_id = once.id
            ),
            (select folded.seq from folded where folded.id = once.id)
        ),
        id,
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
    from once
    order by place;
end;
$$;

-- Whether a new event of the batch has a number of its replica that another event has, a row or folded.
create function ai_memory_private.is_forked(p_user uuid, p_batch public.ai_memory_events[]) returns boolean
language plpgsql stable set search_path = '' as $$
begin
    return exists (
        select from unnest(p_batch) as r
        where r.seq is null and (
            select taken.event_id from public.ai_memory_events as taken
            where taken.user_id = p_user and taken.replica_id = r.replica_id and taken.replica_seq = r.replica_seq
        ) is not null
    ) or exists (
        select from ai_memory_private.folded(p_user, array(
            select ai_memory_private.mark(r.replica_seq || '/', r.replica_id) from unnest(p_batch) as r
            where r.seq is null
        )) as taken
        join unnest(p_batch) as r
            on r.replica_id = taken ->> 'replica_id' and r.replica_seq = (taken -> 'replica_seq')::bigint
        where r.seq is null
    );
end;
$$;

-- As in ..._ai_memory_partitions.sql, but for the fork.
create or replace function ai_memory_private.push(
    p_user uuid, p_device_id text, p_replica_id text, p_events jsonb, p_head bigint,
    out head bigint, out acked jsonb, out error text
) language plpgsql set search_path = '' as $$
declare
    v_batch constant public.ai_memory_events[] := array(
        select r from ai_memory_private.event_rows(p_user, p_device_id, p_replica_id, p_events) as r
    );
begin
    head := p_head;
    acked := '[]';
    if ai_memory_private.is_forked(p_user, v_batch) then
        error := 'device_forked';
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

-- --- forgetting ---------------------------------------------------------------------------------------------

-- Blanks rows and folded events and answers how many events that were. The caller holds the head row.
create function ai_memory_private.blank(p_user uuid, p_ids text[]) returns integer
language plpgsql set search_path = '' as $$
declare
    v_now constant timestamptz := now();
    v_marks constant bigint[] := array(select ai_memory_private.mark('id/', id) from unnest(p_ids) as id);
    v_blanked text[];
    v_place record;
begin
    with done as (
        update public.ai_memory_events set payload = '{}', extra = '{}', bytes = 2, forgotten_at = v_now
        where user_id = p_user and forgotten_at is null and event_id = any (p_ids)
        returning event_id
    )
    select coalesce(array_agg(event_id), '{}') into v_blanked from done;
    for v_place in
        select event ->> 'event_id' as id, (event -> 'seq')::bigint as seq
        from ai_memory_private.folded(p_user, v_marks) as event
        where event ->> 'event_id' = any (p_ids) and not event ? 'forgotten_at'
    loop
        update public.ai_memory_checkpoints set events = jsonb_set(
            events, array[(v_place.seq - from_seq)::text],
            ai_memory_private.blanked(events -> (v_place.seq - from_seq)::integer, v_now)
        )
        where user_id = p_user and v_place.seq between from_seq and through_seq;
        v_blanked := v_blanked || v_place.id;
    end loop;
    return (select count(distinct id) from unnest(v_blanked) as id);
end;
$$;

-- A told event without what its author wrote: unknown fields of a newer writer go as well.
create function ai_memory_private.blanked(p_event jsonb, p_now timestamptz) returns jsonb
language sql stable set search_path = '' as $$
    select jsonb_object_agg(field.key, field.value) || jsonb_build_object(
        'payload', '{}'::jsonb, 'forgotten_at', ai_memory_private.rfc3339(p_now)
    )
    from jsonb_each(p_event) as field
    where field.key = any (array[
        'seq', 'server_ts', 'event_id', 'replica_id', 'replica_seq', 'device_id', 'schema_version', 'project_id',
        'project_path', 'session_id', 'ts', 'type', 'hlc', 'origin', 'reach', 'local_date', 'utc_offset'
    ]);
$$;

-- The ids that the `payload_forgotten` events of a batch name.
create function ai_memory_private.forgotten_in(p_events jsonb) returns text[]
language sql immutable set search_path = '' as $$
    select array(
        select id #>> '{}'
        from jsonb_array_elements(p_events) as event
        cross join lateral jsonb_array_elements(
            case when jsonb_typeof(event -> 'payload' -> 'event_ids') = 'array'
                then event -> 'payload' -> 'event_ids' else '[]' end
        ) as id
        where event ->> 'type' = 'payload_forgotten' and jsonb_typeof(id) = 'string'
    );
$$;

create or replace function public.ai_memory_forget(p_device_id text, p_event_ids jsonb) returns integer
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(v_user, p_device_id);
begin
    perform ai_memory_private.head_of(v_device.user_id, p_lock => true);
    return ai_memory_private.blank(v_device.user_id, array(
        select jsonb_array_elements_text(ai_memory_private.unwrapped(p_event_ids))
    ));
end;
$$;

-- --- the round trip -----------------------------------------------------------------------------------------

-- Notes what a device holds: together with last_seen_at, or after a long way, or when it starts again.
create function ai_memory_private.note_cursor(p_user uuid, p_device_id text, p_cursor bigint) returns void
language sql set search_path = '' as $$
    update public.ai_memory_devices set cursor_seq = p_cursor
    where user_id = p_user and device_id = p_device_id and cursor_seq <> p_cursor
        and (last_seen_at = now() or cursor_seq > p_cursor or cursor_seq < p_cursor - 1000);
$$;

drop function ai_memory_private.pull(uuid, bigint, bigint, integer);
create function ai_memory_private.pull(
    p_head public.ai_memory_heads, p_after bigint, p_limit integer
) returns jsonb language plpgsql stable set search_path = '' as $$
declare
    v_folded jsonb := '[]';
    v_after bigint := p_after;
    v_bytes bigint := 0;
begin
    if v_after < p_head.floor_seq then
        v_folded := ai_memory_private.pull_folded(p_head.user_id, v_after, p_limit);
        v_after := coalesce((v_folded -> -1 -> 'seq')::bigint, v_after);
        v_bytes := octet_length(v_folded::text);
        if v_after < p_head.floor_seq then
            return v_folded;
        end if;
    end if;
    return v_folded || (
        with page as (
            select
                e as event, e.seq,
                v_bytes + sum(e.bytes) over (order by e.seq rows unbounded preceding) - e.bytes as bytes_before
            from public.ai_memory_events as e
            where e.user_id = p_head.user_id and e.seq > v_after and e.seq <= p_head.seq
            order by e.seq
            limit p_limit - jsonb_array_length(v_folded)
        )
        select coalesce(jsonb_agg(ai_memory_private.told(page.event) order by page.seq), '[]')
        from page
        where page.bytes_before < 1048576
    );
end;
$$;

create or replace function public.ai_memory_sync(
    p_device_id text,
    p_replica_id text,
    p_events jsonb default null,
    p_after bigint default 0,
    p_after_event text default null,
    p_epoch text default null,
    p_limit integer default 500,
    p_snapshot jsonb default null
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_after constant bigint := coalesce(p_after, 0);
    v_limit constant integer := least(greatest(coalesce(p_limit, 500), 0), 1000);
    v_events constant jsonb := coalesce(ai_memory_private.unwrapped(p_events), '[]');
    v_error text := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id);
    v_head public.ai_memory_heads;
    v_reset boolean := false;
    v_acked jsonb := '[]';
    v_pulled jsonb := '[]';
    v_snapshot text;
begin
    perform ai_memory_private.check_events(v_events, p_device_id, p_replica_id);
    v_head := ai_memory_private.head_of(v_user, p_lock => v_error is null and v_events <> '[]');
    if v_error is null then
        v_reset := ai_memory_private.must_reset(v_head, v_after, p_after_event, p_epoch);
        perform ai_memory_private.note_cursor(v_user, p_device_id, case when v_reset then 0 else v_after end);
        if v_events <> '[]' then
            select pushed.head, pushed.acked, pushed.error into v_head.seq, v_acked, v_error
            from ai_memory_private.push(v_user, p_device_id, p_replica_id, v_events, v_head.seq) as pushed;
        end if;
    end if;
    if v_error is null then
        perform ai_memory_private.blank(v_user, ids) from ai_memory_private.forgotten_in(v_events) as ids
        where ids <> '{}';
        v_snapshot := ai_memory_private.write_document(
            v_user, p_device_id, p_replica_id, ai_memory_private.unwrapped(p_snapshot)
        );
        if not v_reset then
            v_pulled := ai_memory_private.pull(v_head, v_after, v_limit);
        end if;
    end if;
    return jsonb_build_object(
        'epoch', v_head.epoch, 'head', v_head.seq, 'floor', ai_memory_private.lowest(v_head),
        'reset', v_reset and v_error is null, 'events', v_pulled, 'acked', v_acked,
        'server_time', ai_memory_private.rfc3339(clock_timestamp())
    )
        || case when v_snapshot is null then '{}' else jsonb_build_object('snapshot', v_snapshot) end
        || case when v_error is null then '{}' else jsonb_build_object('error', v_error) end;
end;
$$;

-- --- for administrators -----------------------------------------------------------------------------------------

-- Packs at most p_most events of a user that every device seen in the last p_days holds, and raises floor_seq. Call it
-- until `done`. `held_by` is the device that keeps the floor from rising further, null where it stands at the head.
create function public.ai_memory_admin_checkpoint(
    p_user uuid, p_days integer default 30, p_most integer default 5000
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_events constant integer := 500; -- of one checkpoint row: half of the longest page
    v_bytes constant integer := 524288; -- likewise
    v_head public.ai_memory_heads;
    v_slowest public.ai_memory_devices;
    v_open public.ai_memory_checkpoints;
    v_limit bigint;
    v_floor bigint;
begin
    select * into v_head from public.ai_memory_heads where user_id = p_user for update;
    if v_head.user_id is null then
        perform ai_memory_private.refuse('22023', 'no_such_user', 'this user has no memory here', 'Check the id.');
    end if;
    select * into v_slowest from public.ai_memory_devices
    where user_id = p_user and revoked_at is null and replica_id is not null -- the original app's rows pull nothing
        and last_seen_at > now() - make_interval(days => greatest(p_days, 1)) and cursor_seq < v_head.seq
    order by cursor_seq, device_id
    limit 1;
    v_limit := coalesce(v_slowest.cursor_seq, v_head.seq);
    v_floor := v_head.floor_seq;
    while v_floor < v_limit and v_floor < v_head.floor_seq + greatest(p_most, 1) loop
        delete from public.ai_memory_checkpoints as last
        where user_id = p_user and through_seq = v_floor
            and through_seq - from_seq + 1 < v_events and bytes < v_bytes / 2
        returning * into v_open;
        with page as (
            select e as event, e.seq, e.bytes,
                coalesce(v_open.bytes, 0) + sum(e.bytes) over (order by e.seq rows unbounded preceding) as bytes_with
            from public.ai_memory_events as e
            where e.user_id = p_user and e.seq > v_floor and e.seq <= v_limit
            order by e.seq
            limit v_events - coalesce(jsonb_array_length(v_open.events), 0)
        ), packed as (
            select
                coalesce(v_open.events, '[]') || jsonb_agg(ai_memory_private.told(event) order by seq) as events,
                max(seq) as through_seq, max(bytes_with) as bytes
            from page
            where bytes_with <= v_bytes or seq = v_floor + 1
        )
        insert into public.ai_memory_checkpoints
            (user_id, through_seq, from_seq, through_event, events, marks, bytes, created_at)
        select
            p_user, through_seq, coalesce(v_open.from_seq, v_floor + 1), events -> -1 ->> 'event_id', events,
            ai_memory_private.marks_of(events), bytes, now()
        from packed
        returning through_seq into strict v_floor; -- a hole in the numbers would end it here, with nothing done
    end loop;
    update public.ai_memory_heads set floor_seq = v_floor where user_id = p_user and floor_seq < v_floor;
    return jsonb_build_object(
        'folded', v_floor - v_head.floor_seq, 'floor', v_floor, 'head', v_head.seq,
        'done', v_floor >= v_limit, 'held_by', v_slowest.device_id
    );
end;
$$;

-- Deletes at most p_most rows of a user that a checkpoint holds. Call it until it answers fewer.
create function public.ai_memory_admin_prune(p_user uuid, p_most integer default 5000) returns integer
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_count integer;
begin
    delete from public.ai_memory_events where user_id = p_user and seq in (
        select e.seq from public.ai_memory_events as e
        where e.user_id = p_user
            and e.seq <= (select floor_seq from public.ai_memory_heads where user_id = p_user)
            and exists (
                select from public.ai_memory_checkpoints as c
                where c.user_id = p_user and e.seq between c.from_seq and c.through_seq
            )
        order by e.seq
        limit greatest(p_most, 1)
    );
    get diagnostics v_count = row_count;
    return v_count;
end;
$$;

revoke all on function
    ai_memory_private.mark(text, text),
    ai_memory_private.marks_of(jsonb),
    ai_memory_private.folded(uuid, bigint[]),
    ai_memory_private.lowest(public.ai_memory_heads),
    ai_memory_private.event_at(public.ai_memory_heads, bigint),
    ai_memory_private.told(public.ai_memory_events),
    ai_memory_private.pull_folded(uuid, bigint, integer),
    ai_memory_private.pull(public.ai_memory_heads, bigint, integer),
    ai_memory_private.is_forked(uuid, public.ai_memory_events[]),
    ai_memory_private.blank(uuid, text[]),
    ai_memory_private.blanked(jsonb, timestamptz),
    ai_memory_private.forgotten_in(jsonb),
    ai_memory_private.note_cursor(uuid, text, bigint)
from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_admin_checkpoint(uuid, integer, integer), public.ai_memory_admin_prune(uuid, integer)
from public, anon, authenticated, service_role;
grant execute on function
    public.ai_memory_admin_checkpoint(uuid, integer, integer), public.ai_memory_admin_prune(uuid, integer)
to service_role;
