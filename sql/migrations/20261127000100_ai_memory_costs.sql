-- What one account may cost: exact quotas, cheap refusals, a bound on what a call reads.
--
--   * New devices and documents are counted under the head row's lock. Rows that a client inserts into ai_memory itself
--     were counted without it, so 21 of 20 devices a day could be made beside registrations.
--   * Sizes are tested before anything that reads the whole batch as text, and each event's depth once.
--   * Signed-in users no longer select from ai_memory_events: no client does, and a filter over payloads read all of
--     them, as often as wished. They read through ai_memory_sync, which reads one page.
--   * Events from before the day on which their device was registered are its history. They do not count for the
--     account's day, up to `history_events` of a device and `history_bytes` of the account, once; what is beyond these
--     counts like all other events. So someone who moves years of conversations is not stopped after the first day. An
--     event's day is its hlc's, in UTC; the client may write any, so the allowance is used up and never comes back.
--   * `updated_at` of a direct write that names no time of a calendar is refused; before, it became the server's.

alter table public.ai_memory_devices
    add column history_events bigint not null default 0,
    add column history_bytes bigint not null default 0;
comment on column public.ai_memory_devices.history_events is 'Events from before the device''s registration that did '
    'not count for a day.';
alter table public.ai_memory_activity
    add column history_events bigint not null default 0,
    add column history_bytes bigint not null default 0;

insert into public.ai_memory_limits (name, value, about) values
('history_events', 2000000, 'events of a device, from before its registration, that do not count for a day; once'),
('history_bytes', 2147483648, 'bytes of such events of an account; once')
on conflict (name) do nothing;

-- --- counting under the lock --------------------------------------------------------------------------------

create or replace function ai_memory_private.check_device_limits() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    v_all bigint;
    v_new bigint;
begin
    if auth.uid() is null or exists (
        select from public.ai_memory_devices where user_id = new.user_id and device_id = new.device_id
    ) then
        return new;
    end if;
    perform ai_memory_private.head_of(new.user_id, p_lock => true);
    select count(*), count(*) filter (where created_at > now() - interval '1 day') into v_all, v_new
    from public.ai_memory_devices where user_id = new.user_id;
    if v_all >= ai_memory_private.limit_of('devices') or v_new >= ai_memory_private.limit_of('devices_a_day') then
        perform ai_memory_private.refuse(
            '42501', 'quota', 'the account has too many devices',
            'Use one of its devices, or ask the administrator to raise the limit; many new ones in a day wait a day.',
            p_field => case when v_all >= ai_memory_private.limit_of('devices') then 'devices' else 'devices_a_day' end
        );
    end if;
    return new;
end;
$$;

create or replace function ai_memory_private.check_document_limit() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    if auth.uid() is null or exists (
        select from public.ai_memory where user_id = new.user_id and device_id = new.device_id
    ) then
        return new;
    end if;
    perform ai_memory_private.head_of(new.user_id, p_lock => true);
    if (
        select count(*) from public.ai_memory where user_id = new.user_id
    ) >= ai_memory_private.limit_of('documents') then
        perform ai_memory_private.refuse(
            '42501', 'quota', 'the account has too many documents',
            'Ask the administrator to raise the limit.', p_field => 'documents'
        );
    end if;
    return new;
end;
$$;

-- --- cheap refusals -----------------------------------------------------------------------------------------

-- Refuses the first unacceptable event and names it, so that the client can quarantine that one event.
-- pg_column_size: the shortest text of 10 MiB of jsonb is longer than 2 MiB, and is not made.
create or replace function ai_memory_private.check_events(p_events jsonb, p_device_id text, p_replica_id text)
returns void language plpgsql stable set search_path = '' as $$
declare
    v_large boolean;
    v_event_id text;
    v_field text;
begin
    if jsonb_typeof(p_events) <> 'array' then
        perform ai_memory_private.refuse('22023', 'bad_request', 'p_events must be an array', 'Send a JSON array.');
    end if;
    v_large := jsonb_array_length(p_events) > 500 or pg_column_size(p_events) > 10485760;
    if not v_large then
        v_large := octet_length(p_events::text) > 2097152;
    end if;
    if v_large then
        perform ai_memory_private.refuse(
            '22023', 'batch_too_large', 'more than 500 events or 2 MiB in one call', 'Send fewer events at once.'
        );
    end if;
    select left(item.event ->> 'event_id', 128), problem.field into v_event_id, v_field
    from jsonb_array_elements(p_events) with ordinality as item (event, place)
    cross join lateral (
        select ai_memory_private.event_problem(item.event, p_device_id) as field offset 0 -- once an event
    ) as problem
    where problem.field is not null
    order by item.place
    limit 1;
    if v_field is null then -- two events with one number: refuse one of them
        select max(item.event ->> 'event_id'), 'replica_seq' into v_event_id, v_field
        from jsonb_array_elements(p_events) as item (event)
        group by coalesce(item.event ->> 'replica_id', p_replica_id), item.event -> 'replica_seq'
        having min(item.event ->> 'event_id') <> max(item.event ->> 'event_id')
        limit 1;
    end if;
    -- two events with one id: one of them would be acknowledged and not be there
    if v_field is null and (
        select count(*) > count(distinct event ->> 'event_id') from jsonb_array_elements(p_events) as event
    ) then
        select event ->> 'event_id', 'event_id_taken' into v_event_id, v_field
        from jsonb_array_elements(p_events) as event
        group by event ->> 'event_id'
        having count(distinct md5((event - array['replica_id', 'replica_seq'])::text)) > 1
        limit 1;
    end if;
    if v_field is not null then
        perform ai_memory_private.refuse(
            '22023', 'bad_event', format('event refused: %s', v_field),
            'Set this event aside; the others can be sent without it.', v_event_id, v_field
        );
    end if;
end;
$$;

-- `updated_at` of a direct write is the client's. No time, one before 2000 or one more than a day ahead becomes the
-- server's, so that a wrong clock cannot lead every list for ever. What no clock says is refused.
create or replace function ai_memory_private.bound_times() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    if auth.uid() is not null and (
        not isfinite(new.updated_at) or new.updated_at >= timestamptz '10000-01-01 00:00:00Z'
    ) then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'updated_at must be a time of a calendar', 'Send the time, or leave it out.',
            p_field => 'updated_at'
        );
    end if;
    if new.updated_at is null or not isfinite(new.updated_at)
        or new.updated_at not between timestamptz '2000-01-01 00:00:00Z' and now() + interval '1 day'
    then
        new.updated_at := now();
    end if;
    return new;
end;
$$;

revoke select on table public.ai_memory_events from authenticated;

-- --- history ------------------------------------------------------------------------------------------------

-- The clock part of the first hlc of the day on which the device was registered. Hexadecimal digits of one length:
-- compared as text.
create function ai_memory_private.history_ends(p_user uuid, p_device_id text) returns text
language plpgsql stable set search_path = '' as $$
begin
    return (
        select lpad(to_hex((extract(epoch from date_trunc('day', created_at, 'UTC')) * 1000)::bigint), 12, '0')
        from public.ai_memory_devices where user_id = p_user and device_id = p_device_id
    ) collate "C";
end;
$$;

-- Whether so much history of a device is still free.
create function ai_memory_private.is_free_history(p_user uuid, p_device_id text, p_events bigint, p_bytes bigint)
returns boolean language plpgsql stable set search_path = '' as $$
begin
    return p_events + (
        select history_events from public.ai_memory_devices where user_id = p_user and device_id = p_device_id
    ) <= ai_memory_private.limit_of('history_events')
    and p_bytes + (
        select sum(history_bytes) from public.ai_memory_devices where user_id = p_user
    ) <= ai_memory_private.limit_of('history_bytes');
end;
$$;

create or replace function ai_memory_private.count_activity() returns trigger
language plpgsql set search_path = '' as $$
declare
    v_part record;
begin
    for v_part in
        select
            sums.*, sums.old_events > 0 and ai_memory_private.is_free_history(
                sums.user_id, sums.device_id, sums.old_events, sums.old_bytes
            ) as is_free
        from (
            select
                a.user_id, a.device_id, (a.server_ts at time zone 'UTC')::date as day,
                count(*) as events, sum(a.bytes) as bytes,
                count(*) filter (where left(a.hlc, 12) collate "C" < d.ends) as old_events,
                coalesce(sum(a.bytes) filter (where left(a.hlc, 12) collate "C" < d.ends), 0) as old_bytes
            from arrived as a
            join (
                select user_id, device_id, ai_memory_private.history_ends(user_id, device_id) as ends
                from (select distinct user_id, device_id from arrived) as seen
            ) as d on d.user_id = a.user_id and d.device_id = a.device_id
            group by 1, 2, 3
        ) as sums
    loop
        if v_part.is_free then
            update public.ai_memory_devices set
                history_events = history_events + v_part.old_events, history_bytes = history_bytes + v_part.old_bytes
            where user_id = v_part.user_id and device_id = v_part.device_id;
        else
            v_part.old_events := 0;
            v_part.old_bytes := 0;
        end if;
        insert into public.ai_memory_activity as known
            (user_id, day, device_id, events, bytes, history_events, history_bytes)
        values (
            v_part.user_id, v_part.day, v_part.device_id, v_part.events, v_part.bytes,
            v_part.old_events, v_part.old_bytes
        )
        on conflict (user_id, day, device_id) do update set
            events = known.events + excluded.events, bytes = known.bytes + excluded.bytes,
            history_events = known.history_events + excluded.history_events,
            history_bytes = known.history_bytes + excluded.history_bytes;
    end loop;
    return null;
end;
$$;

-- What the account sent and erased today, without its history.
create or replace function ai_memory_private.today_of(
    p_user uuid, out events bigint, out bytes bigint, out erased bigint
) language plpgsql stable set search_path = '' as $$
begin
    select
        coalesce(sum(a.events - a.history_events), 0), coalesce(sum(a.bytes - a.history_bytes), 0),
        coalesce(sum(a.erased), 0)
    into events, bytes, erased
    from public.ai_memory_activity as a
    where a.user_id = p_user and a.day = (now() at time zone 'UTC')::date;
end;
$$;

-- check_quota for a batch: its history, if all of it is free, does not count.
create function ai_memory_private.check_day(p_user uuid, p_device_id text, p_events jsonb, p_erased bigint)
returns void language plpgsql stable set search_path = '' as $$
declare
    v_count constant bigint := jsonb_array_length(p_events);
    v_bytes constant bigint := octet_length(p_events::text);
    v_ends constant text := ai_memory_private.history_ends(p_user, p_device_id);
    v_old_count bigint;
    v_old_bytes bigint := 0;
begin
    select count(*) into v_old_count from jsonb_array_elements(p_events) as event
    where left(event ->> 'hlc', 12) collate "C" < v_ends;
    if v_old_count = v_count then
        v_old_bytes := v_bytes;
    elsif v_old_count > 0 then
        select sum(octet_length(event::text)) into v_old_bytes from jsonb_array_elements(p_events) as event
        where left(event ->> 'hlc', 12) collate "C" < v_ends;
    end if;
    if v_old_count > 0 and not ai_memory_private.is_free_history(p_user, p_device_id, v_old_count, v_old_bytes) then
        v_old_count := 0;
        v_old_bytes := 0;
    end if;
    perform ai_memory_private.check_quota(p_user, v_count - v_old_count, v_bytes - v_old_bytes, p_erased);
end;
$$;

revoke all on function
    ai_memory_private.history_ends(uuid, text),
    ai_memory_private.is_free_history(uuid, text, bigint, bigint),
    ai_memory_private.check_day(uuid, text, jsonb, bigint)
from public, anon, authenticated, service_role;
