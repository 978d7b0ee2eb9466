-- ai_memory_sync: push, acknowledge, pull and the device's document in one round trip and one transaction.
--
-- Numbering
--   * Every event gets the next number of its user under the user's head row lock, held until commit. So numbers become
--     visible in order, and a reader whose cursor is at n has missed nothing. Cursors over now(), a sequence or client
--     clocks lose rows as soon as an earlier transaction commits later (measured: 5 to 50 percent with concurrent
--     writers).
--   * A call that pushes nothing takes no lock: any snapshot holds a prefix without a gap. It reads the head first and
--     pulls up to it. Folding and pruning may pass between the two; the client then sees the gap and asks again.
--   * A known event_id is skipped, uses no number, and is acknowledged with the number it has, whatever replica it
--     comes from (unsent events move to a new replica with their ids).
--   * The same (replica_id, replica_seq) under another id means that two databases continue one history (a clone, a
--     restored backup): `device_forked`. Like `device_conflict` it is the `error` of a normal answer, and nothing was
--     applied.
--
-- Reset
--   * A cursor is reset if its epoch is another or missing, if it is past the head or below the lowest number that can
--     be served, if the event at the cursor is another than the client's (p_after_event is required), or if the server
--     took it at another time (p_after_ts). After a restore under the same epoch a device sends its lost events again,
--     and its newest may get its former number while those below are different; only the time then shows it.
--   * Reset is judged against the head before this push: a push could otherwise refill the numbers that a restored
--     server lost, and hide the loss. The push is applied all the same; nothing is pulled; the client fetches again
--     from `floor`.
--
-- Checkpoints (old events, packed a few hundred to a row by ai_memory_admin_checkpoint)
--   * Folding loses nothing. A checkpoint holds every event word for word, including the payloads of edited and removed
--     entries: a device that comes back after months sends edits whose base they are.
--   * A cursor below floor_seq is answered from checkpoints, with the numbers the events had. `floor` in an answer is
--     the lowest cursor that can be served: 0, unless someone cut the log by hand.
--   * Known ids stay known: a folded event that is sent again is acknowledged with its number, and its replica number
--     stays taken. Both are looked up by 64-bit marks in one GIN index and then compared.
--
-- Erasure
--   * `payload_forgotten` with {"event_ids": [...]} erases what it names when it arrives, so a request made offline
--     waits in the outbox like any event. ai_memory_forget erases at once. Both hold the head row: an event cannot be
--     packed while it is being erased.
--
-- The document
--   * It is written if it is newer for its replica (through_replica_seq), or if it comes from another replica that now
--     speaks for the device. Text that another program wrote is replaced only by a client that has read it
--     (`base_sha256`); else `snapshot` answers 'foreign', also in a call without a document.
--   * A document may change under the same through_replica_seq: another device's event or an erasure changes it. Then
--     it is written over the text that the sender names in base_sha256 and over no other, because requests arrive late
--     and twice. A sender that names another text gets 'stale': read the row, name its text, send again.
--   * A bad document raises, so a client whose call was refused first tries without it.
--
-- A page is cut at p_limit (at most 1000) and at 1 MiB of event text, but holds at least one event. lock_timeout 4 s
-- stays inside the hosted statement timeout (8 s): a stuck writer is a retryable 55P03.

-- --- checkpoints --------------------------------------------------------------------------------------------

-- 64 bits of SHA-256. hashtext is not used because it may change with the version of PostgreSQL.
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

-- All events of the user's checkpoints that hold one of the marks; the caller compares. The planner does not know what
-- unpacking an array costs, so the sequential scan is off.
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

-- The id of the event with this number, stored or folded.
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

-- --- pull ---------------------------------------------------------------------------------------------------

-- Whether the client's cursor does not belong to this log.
create function ai_memory_private.must_reset(
    p_head public.ai_memory_heads, p_after bigint, p_after_event text, p_epoch text, p_after_ts text
) returns boolean language plpgsql stable set search_path = '' as $$
declare
    v_lowest constant bigint := ai_memory_private.lowest(p_head);
begin
    return case
        when p_after > 0 and p_epoch is null then true
        when p_epoch <> p_head.epoch then true
        when p_after > p_head.seq or p_after < v_lowest then true
        when p_after = v_lowest then false
        when p_after_event is distinct from ai_memory_private.event_at(p_head, p_after) then true
        when p_after_ts is null or p_after <= p_head.floor_seq then false
        else p_after_ts is distinct from (
            select ai_memory_private.rfc3339(server_ts)
            from public.ai_memory_events where user_id = p_head.user_id and seq = p_after
        )
    end;
end;
$$;

-- An event as ai_memory_sync returns it.
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

-- One page out of checkpoints. Three checkpoints hold more than a page may.
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

-- One page of events after p_after: folded ones first, then rows.
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

-- Stores the device's cursor: together with last_seen_at, after 1,000 events, or when it starts again. An idle poll
-- writes nothing.
create function ai_memory_private.note_cursor(p_user uuid, p_device_id text, p_cursor bigint) returns void
language sql set search_path = '' as $$
    update public.ai_memory_devices set cursor_seq = p_cursor
    where user_id = p_user and device_id = p_device_id and cursor_seq <> p_cursor
        and (last_seen_at = now() or cursor_seq > p_cursor or cursor_seq < p_cursor - 1000);
$$;

-- --- push ---------------------------------------------------------------------------------------------------

-- Checked events as rows in the order of the batch, each id once. seq is the number of a known id (a row or folded),
-- else null. The look-up is a scalar subquery on purpose: one probe of a unique index. As a join, and without
-- statistics, it was planned as a scan of all the user's events.
create function ai_memory_private.event_rows(
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
            'user_id', 'seq', 'server_ts', 'forgotten_at' -- set by the server only
        ],
        octet_length(event::text),
        date_trunc('milliseconds', clock_timestamp()),
        null::timestamptz
    from once
    order by place;
end;
$$;

-- Whether a new event of the batch has a replica number that another event, stored or folded, already has.
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

-- Numbers and stores the new events. The caller holds the head row. error is null or 'device_forked'.
create function ai_memory_private.push(
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

-- --- erasure ------------------------------------------------------------------------------------------------

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

-- A folded event without its payload and without the unknown fields of a newer client.
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

-- Erases the payloads of rows and folded events; returns how many. The caller holds the head row.
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

-- Erases payloads at once and keeps the numbered rows; returns how many it erased. Other devices learn of it from the
-- client's `payload_forgotten` event; documents in ai_memory follow with each device's next one.
create function public.ai_memory_forget(p_device_id text, p_event_ids jsonb) returns integer
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_ids constant jsonb := ai_memory_private.unwrapped(p_event_ids);
    v_device public.ai_memory_devices;
    v_count integer;
begin
    if jsonb_typeof(v_ids) is distinct from 'array' then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'p_event_ids must be an array', 'Send a JSON array.', p_field => 'p_event_ids'
        );
    end if;
    perform ai_memory_private.check_erasures(jsonb_array_length(v_ids));
    v_device := ai_memory_private.device_of(v_user, p_device_id);
    perform ai_memory_private.head_of(v_device.user_id, p_lock => true);
    perform ai_memory_private.check_quota(v_user, 0, 0, jsonb_array_length(v_ids));
    v_count := ai_memory_private.blank(v_device.user_id, array(select jsonb_array_elements_text(v_ids)));
    perform ai_memory_private.note_erased(v_user, p_device_id, v_count);
    return v_count;
end;
$$;

-- --- the document -------------------------------------------------------------------------------------------

-- Rows of ai_memory keep their identity. A write by another program than ai_memory_sync is marked as foreign
-- (replica_id and through_replica_seq null, the hash computed here), so the sidecar does not overwrite text that it has
-- not read. What marks it is content that changes without its hash: only ai_memory_sync sets the hash. The original app
-- does not register its device, so its first row does.
create function ai_memory_private.tend_document() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    v_foreign boolean;
begin
    if tg_op = 'INSERT' then
        insert into public.ai_memory_devices (user_id, device_id) values (new.user_id, new.device_id)
        on conflict (user_id, device_id) do nothing;
        v_foreign := new.through_replica_seq is null;
    else
        -- An upsert through PostgREST sets every column of its body, so device_id has an update grant; it may be set
        -- to its own value only.
        if (new.id, new.user_id, new.device_id) is distinct from (old.id, old.user_id, old.device_id) then
            perform ai_memory_private.refuse(
                '42501', 'identity_fixed', 'id, owner and device of a document cannot change', 'Insert a new row.'
            );
        end if;
        v_foreign := new.content <> old.content and new.content_sha256 is not distinct from old.content_sha256;
    end if;
    if v_foreign then
        new.replica_id := null;
        new.through_replica_seq := null;
        new.content_sha256 := encode(sha256(convert_to(new.content, 'UTF8')), 'hex');
    end if;
    return new;
end;
$$;

create trigger ai_memory_tend_document before insert or update on public.ai_memory
for each row execute function ai_memory_private.tend_document();

-- `updated_at` of a direct write is the client's. No time, one before 2000 or one more than a day ahead becomes the
-- server's, so that it cannot lead every list for ever.
create function ai_memory_private.bound_times() returns trigger
language plpgsql set search_path = '' as $$
begin
    if new.updated_at is null or not isfinite(new.updated_at)
        or new.updated_at not between timestamptz '2000-01-01 00:00:00Z' and now() + interval '1 day'
    then
        new.updated_at := now();
    end if;
    return new;
end;
$$;

create trigger ai_memory_bound_times before insert or update on public.ai_memory
for each row execute function ai_memory_private.bound_times();

-- 'written'; 'kept' (the stored text is as new); 'stale' (another text under the same number, which the caller did not
-- name); 'foreign' (another program wrote there and the caller has not read it). Without a document: 'foreign' or null.
create function ai_memory_private.write_document(
    p_user uuid, p_device_id text, p_replica_id text, p_snapshot jsonb
) returns text language plpgsql set search_path = '' as $$
declare
    v_content constant text := p_snapshot ->> 'content';
    v_hash constant text := encode(sha256(convert_to(v_content, 'UTF8')), 'hex');
    v_base constant text := p_snapshot ->> 'base_sha256';
    v_through constant text := p_snapshot ->> 'through_replica_seq';
    v_row public.ai_memory;
begin
    if p_snapshot is null then
        return (
            select 'foreign' from public.ai_memory
            where user_id = p_user and device_id = p_device_id and replica_id is null
        );
    end if;
    if jsonb_typeof(p_snapshot -> 'content') is distinct from 'string' or octet_length(v_content) > 1048576
        or v_hash is distinct from p_snapshot ->> 'content_sha256' or coalesce(v_through, '') !~ '^\d{1,18}$'
    then
        perform ai_memory_private.refuse(
            '22023', 'bad_snapshot', 'document refused: content (at most 1 MiB), its sha256 or through_replica_seq',
            'Send the events without the document.', p_field => 'p_snapshot'
        );
    end if;
    insert into public.ai_memory as doc
        (user_id, device_id, content, content_sha256, replica_id, through_replica_seq, updated_at)
    values (
        p_user, p_device_id, v_content, v_hash, p_replica_id, v_through::bigint,
        least((p_snapshot ->> 'updated_at')::timestamptz, now()) -- a device's clock may lag but not lead; null is now
    )
    on conflict (user_id, device_id) do update set
        content = excluded.content, content_sha256 = excluded.content_sha256, replica_id = excluded.replica_id,
        through_replica_seq = excluded.through_replica_seq, updated_at = excluded.updated_at
    where case
        when doc.replica_id is null then doc.content_sha256 in (v_hash, v_base)
        when doc.replica_id <> excluded.replica_id then true
        when doc.through_replica_seq = excluded.through_replica_seq then doc.content_sha256 = v_base
        else doc.through_replica_seq < excluded.through_replica_seq
    end;
    if found then
        return 'written';
    end if;
    select * into v_row from public.ai_memory where user_id = p_user and device_id = p_device_id;
    return case
        when v_row.replica_id is null then 'foreign'
        when v_row.through_replica_seq = v_through::bigint and v_row.content_sha256 <> v_hash then 'stale'
        else 'kept'
    end;
end;
$$;

-- --- the round trip -----------------------------------------------------------------------------------------

-- A device that was caught up before it pushes holds what it pushes; its cursor rises in the same call, so
-- administrators see no lag.
create function public.ai_memory_sync(
    p_device_id text,
    p_replica_id text,
    p_events jsonb default null,
    p_after bigint default 0,
    p_after_event text default null,
    p_epoch text default null,
    p_limit integer default 500,
    p_snapshot jsonb default null,
    p_after_ts text default null
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_after constant bigint := coalesce(p_after, 0);
    v_limit constant integer := least(greatest(coalesce(p_limit, 500), 0), 1000);
    v_events constant jsonb := coalesce(ai_memory_private.unwrapped(p_events), '[]');
    v_error text := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id);
    v_erase text[];
    v_head public.ai_memory_heads;
    v_reset boolean := false;
    v_level boolean;
    v_acked jsonb := '[]';
    v_pulled jsonb := '[]';
    v_snapshot text;
begin
    perform ai_memory_private.check_events(v_events, p_device_id, p_replica_id);
    v_erase := ai_memory_private.forgotten_in(v_events);
    perform ai_memory_private.check_erasures(cardinality(v_erase));
    v_head := ai_memory_private.head_of(v_user, p_lock => v_error is null and v_events <> '[]');
    if v_error is null then
        v_reset := ai_memory_private.must_reset(v_head, v_after, p_after_event, p_epoch, p_after_ts);
        perform ai_memory_private.note_cursor(v_user, p_device_id, case when v_reset then 0 else v_after end);
        if v_events <> '[]' then
            perform ai_memory_private.check_quota(
                v_user, jsonb_array_length(v_events), octet_length(v_events::text), cardinality(v_erase)
            );
            v_level := v_after = v_head.seq and not v_reset;
            select pushed.head, pushed.acked, pushed.error into v_head.seq, v_acked, v_error
            from ai_memory_private.push(v_user, p_device_id, p_replica_id, v_events, v_head.seq) as pushed;
            if v_level and v_error is null then
                update public.ai_memory_devices set cursor_seq = v_head.seq
                where user_id = v_user and device_id = p_device_id and cursor_seq < v_head.seq;
            end if;
        end if;
    end if;
    if v_error is null then
        if v_erase <> '{}' then
            perform ai_memory_private.note_erased(v_user, p_device_id, ai_memory_private.blank(v_user, v_erase));
        end if;
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

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb, text),
    public.ai_memory_forget(text, jsonb)
from public, anon, authenticated, service_role;
