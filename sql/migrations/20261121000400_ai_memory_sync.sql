-- ai_memory_sync: push, acknowledge, pull and the device's own document in one round trip and one transaction.
--
-- Decided here, and why:
--   * Numbering. Every event gets the next number of its user under that user's head row lock, which is held until
--     commit. So numbers become visible in their order: whoever sees n sees all before n, and a reader whose cursor
--     stands at n has missed nothing. Cursors over now(), a sequence or client clocks lose rows as soon as an earlier
--     transaction commits later (measured: 5 to 50 percent with concurrent writers; head row: none).
--   * A call that pushes nothing takes no lock: for the reason above any snapshot holds a gapless prefix. It reads the
--     head first and pulls up to it.
--   * Idempotency is by event_id: a known id is skipped, burns no number, and is acknowledged with the number it has,
--     whatever replica coordinates it comes with (unsent events are re-homed to a new replica with their ids).
--   * The same (replica_id, replica_seq) under another id means that two databases continue one history (a clone, a
--     restored backup): `device_forked`. Like `device_conflict` (see ..._devices.sql) it stands in `error` of a normal
--     answer, and nothing was applied: no event, no document, no pull.
--   * Reset is judged against the head before this push, else a push could refill the numbers a restored server has
--     forgotten and hide that. On reset the push is applied all the same (it is idempotent and owed), nothing is
--     pulled, and the client refetches from `floor`, with the `epoch` of the answer. Reset when the epoch differs (or a
--     cursor comes without one), when the cursor is past the head or below the floor, and when the event at the
--     cursor is not the one the client holds there (above the floor p_after_event is required: a check that can be
--     left out is left out).
--   * A page is cut at p_limit (at most 1000) and at 1 MiB of event text, but holds at least one event. `head` tells
--     whether there is more.
--   * The document is written if it is newer for its replica (through_replica_seq) or comes from another replica that
--     now speaks for the device. Content that somebody else wrote into the row is replaced only by a client that says
--     it has seen it (`base_sha256`), else `snapshot` answers "foreign". A bad document raises, so a client that has a
--     batch refused first tries without it.
--   * lock_timeout 4 s stays inside the hosted statement timeout (8 s): a stuck writer is a retryable 55P03.

create function ai_memory_private.must_reset(
    p_head public.ai_memory_heads, p_after bigint, p_after_event text, p_epoch text
) returns boolean language sql stable set search_path = '' as $$
    select case
        when p_after > 0 and p_epoch is null then true
        when p_epoch <> p_head.epoch then true
        when p_after > p_head.seq or p_after < p_head.floor_seq then true
        when p_after = p_head.floor_seq then false
        else p_after_event is distinct from (
            select event_id from public.ai_memory_events where user_id = p_head.user_id and seq = p_after
        )
    end;
$$;

-- Checked events as rows in the order of the batch, each id once; seq is the number a known id has, else null.
-- The look-up is a scalar subquery on purpose, here and below: one probe of a unique index. As a join it was planned,
-- without statistics, as a scan of everything the user has.
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

-- Numbers and stores what is new. The caller holds the head row. error is null or 'device_forked'.
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

create function ai_memory_private.pull(p_user uuid, p_after bigint, p_head bigint, p_limit integer) returns jsonb
language sql stable set search_path = '' as $$
    with page as (
        select e.*, sum(e.bytes) over (order by e.seq rows unbounded preceding) - e.bytes as bytes_before
        from public.ai_memory_events as e
        where e.user_id = p_user and e.seq > p_after and e.seq <= p_head
        order by e.seq
        limit p_limit
    )
    select coalesce(jsonb_agg(
        page.extra || jsonb_build_object(
            'seq', page.seq, 'server_ts', ai_memory_private.rfc3339(page.server_ts),
            'event_id', page.event_id, 'replica_id', page.replica_id, 'replica_seq', page.replica_seq,
            'device_id', page.device_id, 'schema_version', page.schema_version, 'project_id', page.project_id,
            'project_path', page.project_path, 'session_id', page.session_id, 'ts', page.ts, 'type', page.type,
            'payload', page.payload, 'hlc', page.hlc, 'origin', page.origin, 'reach', 'cloud',
            'local_date', page.local_date, 'utc_offset', page.utc_offset
        ) || case when page.forgotten_at is null then '{}' else
            jsonb_build_object('forgotten_at', ai_memory_private.rfc3339(page.forgotten_at)) end
        order by page.seq
    ), '[]')
    from page
    where page.bytes_before < 1048576;
$$;

-- Null without a document; else 'written', 'kept' (the row is as new) or 'foreign' (unseen text of somebody else).
create function ai_memory_private.write_document(
    p_user uuid, p_device_id text, p_replica_id text, p_snapshot jsonb
) returns text language plpgsql set search_path = '' as $$
declare
    v_content constant text := p_snapshot ->> 'content';
    v_hash constant text := encode(sha256(convert_to(v_content, 'UTF8')), 'hex');
    v_through constant text := p_snapshot ->> 'through_replica_seq';
    v_row public.ai_memory;
begin
    if p_snapshot is null then
        return null;
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
        least((p_snapshot ->> 'updated_at')::timestamptz, now()) -- a device's clock may lag, never lead; null is now
    )
    on conflict (user_id, device_id) do update set
        content = excluded.content, content_sha256 = excluded.content_sha256, replica_id = excluded.replica_id,
        through_replica_seq = excluded.through_replica_seq, updated_at = excluded.updated_at
    where case
        when doc.replica_id is null then doc.content_sha256 in (v_hash, p_snapshot ->> 'base_sha256')
        else doc.replica_id <> excluded.replica_id or doc.through_replica_seq < excluded.through_replica_seq
    end;
    if found then
        return 'written';
    end if;
    select * into v_row from public.ai_memory where user_id = p_user and device_id = p_device_id;
    return case when v_row.replica_id is null then 'foreign' else 'kept' end;
end;
$$;

create function public.ai_memory_sync(
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
        if v_events <> '[]' then
            select pushed.head, pushed.acked, pushed.error into v_head.seq, v_acked, v_error
            from ai_memory_private.push(v_user, p_device_id, p_replica_id, v_events, v_head.seq) as pushed;
        end if;
    end if;
    if v_error is null then
        v_snapshot := ai_memory_private.write_document(
            v_user, p_device_id, p_replica_id, ai_memory_private.unwrapped(p_snapshot)
        );
        if not v_reset then
            v_pulled := ai_memory_private.pull(v_user, v_after, v_head.seq, v_limit);
        end if;
    end if;
    return jsonb_build_object(
        'epoch', v_head.epoch, 'head', v_head.seq, 'floor', v_head.floor_seq,
        'reset', v_reset and v_error is null, 'events', v_pulled, 'acked', v_acked,
        'server_time', ai_memory_private.rfc3339(clock_timestamp())
    )
        || case when v_snapshot is null then '{}' else jsonb_build_object('snapshot', v_snapshot) end
        || case when v_error is null then '{}' else jsonb_build_object('error', v_error) end;
end;
$$;

-- Blanks payloads and keeps the numbered rows; answers how many it blanked. An event of the client tells the other
-- devices, which hold copies; the documents in ai_memory follow when each device writes its next one.
create function public.ai_memory_forget(p_device_id text, p_event_ids jsonb) returns integer
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(v_user, p_device_id);
    v_count integer;
begin
    update public.ai_memory_events set payload = '{}', extra = '{}', bytes = 2, forgotten_at = now()
    where user_id = v_device.user_id
        and forgotten_at is null
        and event_id in (select jsonb_array_elements_text(ai_memory_private.unwrapped(p_event_ids)));
    get diagnostics v_count = row_count;
    return v_count;
end;
$$;
