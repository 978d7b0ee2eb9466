-- For many devices: the server says how often they ask, and old events are folded by themselves. The last file of
-- version 4.
--
--   * `poll_seconds` of ai_memory_limits is how often a device asks while nothing happens. Above 0, every answer of
--     ai_memory_sync says it, and devices follow it between 10 seconds and an hour; 0, as at first, leaves it to them.
--     An owner whose project is busy sets it with ai_memory_admin_set_limit and waits for one poll.
--   * ai_memory_admin_schedule_folding lets pg_cron fold every user's old events at night. A project without pg_cron
--     folds from any timer that can call `xiaobai-memory admin` (sql/README.md).
--   * fold is a procedure that commits after each user, so no head row is held for long, and no answer is waited for.

insert into public.ai_memory_limits (name, value, about) values
('poll_seconds', 0, 'seconds between two polls of a device at rest, 10 to 3600; 0: each device''s own setting')
on conflict (name) do nothing;

-- Checked events as rows in the order of the batch, each id once. seq is the number of a known id (a row or folded),
-- else null. The look-up is a scalar subquery on purpose: one probe of a unique index. As a join, and without
-- statistics, it was planned as a scan of all the user's events.
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
        event - 'payload' - array[ -- the payload first: all that is left is copied
            'event_id', 'replica_id', 'replica_seq', 'device_id', 'schema_version', 'project_id', 'project_path',
            'session_id', 'ts', 'type', 'hlc', 'origin', 'local_date', 'utc_offset', 'reach',
            'user_id', 'seq', 'server_ts', 'forgotten_at' -- set by the server only
        ],
        octet_length(event::text),
        date_trunc('milliseconds', clock_timestamp()),
        null::timestamptz
    from once
    order by place;
end;
$$;

-- --- the round trip -----------------------------------------------------------------------------------------

-- A device that was caught up before it pushes holds what it pushes; its cursor rises in the same call, so
-- administrators see no lag.
create or replace function public.ai_memory_sync(
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
        -- A level device is shown level, also between the polls that store its cursor.
        if v_after = v_head.seq and not v_reset then
            update public.ai_memory_devices set cursor_seq = v_after
            where user_id = v_user and device_id = p_device_id and cursor_seq < v_after;
        end if;
        if v_events <> '[]' then
            perform ai_memory_private.check_day(v_user, p_device_id, v_events, cardinality(v_erase));
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
        'server_time', ai_memory_private.rfc3339(clock_timestamp()),
        'poll_seconds', (select value from public.ai_memory_limits where name = 'poll_seconds' and value > 0)
    )
        || case when v_snapshot is null then '{}' else jsonb_build_object('snapshot', v_snapshot) end
        || case when v_error is null then '{}' else jsonb_build_object('error', v_error) end;
end;
$$;

-- --- folding by itself --------------------------------------------------------------------------------------

-- Folds and prunes at most p_users users, those with the most unfolded events first. Called as a statement of its own:
-- it commits. Steps are bounded; a user whose row is locked for long is left for the next night.
create procedure ai_memory_private.fold(p_days integer default 30, p_users integer default 1000)
language plpgsql as $$
declare
    v_user uuid;
    v_done boolean;
begin
    for v_user in
        select user_id from public.ai_memory_heads
        where seq - floor_seq > 500 order by seq - floor_seq desc limit p_users
    loop
        begin
            v_done := false;
            while not v_done loop
                v_done := coalesce(
                    (public.ai_memory_admin_checkpoint(v_user, p_days) ->> 'done')::boolean, true
                );
            end loop;
            while public.ai_memory_admin_prune(v_user) > 0 loop
                null;
            end loop;
        exception when lock_not_available or deadlock_detected then
            raise log 'ai_memory: the events of a user were not folded: % (%)', sqlerrm, sqlstate;
        end;
        commit;
    end loop;
end;
$$;

-- Folds every night by pg_cron; p_schedule null ends that. Answers what will happen.
create function public.ai_memory_admin_schedule_folding(
    p_schedule text default '17 3 * * *', p_days integer default 30
) returns text
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
begin
    if to_regprocedure('cron.schedule(text, text, text)') is null then
        return 'this project has no pg_cron: enable the extension and call this again, or call '
            '`xiaobai-memory admin checkpoint` and `xiaobai-memory admin prune` from a timer (sql/README.md)';
    end if;
    if p_schedule is null then
        perform cron.unschedule(jobid) from cron.job where jobname = 'ai_memory_fold';
        return 'old events are not folded by themselves any more';
    end if;
    perform cron.schedule(
        'ai_memory_fold', p_schedule, format('call ai_memory_private.fold(%s)', greatest(p_days, 1))
    );
    return format('old events are folded by themselves: %s', p_schedule);
end;
$$;

create or replace function public.ai_memory_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 4; $$;

revoke all on procedure ai_memory_private.fold(integer, integer) from public, anon, authenticated, service_role;
revoke all on function public.ai_memory_admin_schedule_folding(text, integer)
from public, anon, authenticated, service_role;
grant execute on function public.ai_memory_admin_schedule_folding(text, integer) to service_role;
