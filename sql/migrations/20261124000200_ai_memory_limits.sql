-- What one account may do: devices, documents, events and bytes a day, erased events a call and a day.
--
-- Decided here, and why:
--   * The defaults are far above what a person does: 70 exchanges a day are some 200 events and 0.2 MB; the log of a year is
--     75,000 events and 50 MB and passes in one day. An import of more goes on the next day.
--   * What is a day is UTC by the server's clock; what arrived is counted in ai_memory_activity already. Limits are compared
--     under the head row's lock, so an account cannot pass them with calls at once.
--   * A limit that time lifts is PT429, which PostgREST answers as 429: a client of any version waits and keeps its events. A
--     limit that only an admin or a person lifts is 42501. What halving mends is 22023. `kind` is `quota`, `field` its name.
--   * Ids to erase are counted before any lock or work. A client that gets `too_many_erasures` halves its batch.
--   * The admin's functions and the SQL editor (no auth.uid()) are not limited.
--   * Change a limit with ai_memory_admin_set_limit (service role) or in the SQL editor. A name that has no row is not limited.

create table public.ai_memory_limits (
    name text primary key,
    value bigint not null check (value >= 0),
    about text not null
);
comment on table public.ai_memory_limits is 'What one account may do. Read by the functions; set by admins.';
alter table public.ai_memory_limits enable row level security;
revoke all on table public.ai_memory_limits from public, anon, authenticated, service_role;
grant select on table public.ai_memory_limits to service_role;

insert into public.ai_memory_limits (name, value, about) values
('devices', 100, 'devices of an account, revoked ones included'),
('devices_a_day', 20, 'new devices of an account within 24 hours'),
('documents', 100, 'documents of an account, one a device'),
('events_a_day', 200000, 'events that an account sends in a UTC day'),
('bytes_a_day', 268435456, 'bytes of these events'),
('erasures_a_call', 2000, 'events that one call may erase'),
('erasures_a_day', 10000, 'events that an account erases in a UTC day');

alter table public.ai_memory_activity add column erased bigint not null default 0;

create function ai_memory_private.limit_of(p_name text) returns bigint
language plpgsql stable set search_path = '' as $$
begin
    return coalesce((select value from public.ai_memory_limits where name = p_name), 9223372036854775807);
end;
$$;

-- What the account sent and erased today.
create function ai_memory_private.today_of(
    p_user uuid, out events bigint, out bytes bigint, out erased bigint
) language plpgsql stable set search_path = '' as $$
begin
    select coalesce(sum(a.events), 0), coalesce(sum(a.bytes), 0), coalesce(sum(a.erased), 0)
    into events, bytes, erased
    from public.ai_memory_activity as a
    where a.user_id = p_user and a.day = (now() at time zone 'UTC')::date;
end;
$$;

-- Refuses what goes beyond the day's limits. The caller holds the head row.
create function ai_memory_private.check_quota(
    p_user uuid, p_events bigint, p_bytes bigint, p_erased bigint
) returns void language plpgsql stable set search_path = '' as $$
declare
    v_today record;
    v_field text;
begin
    select * into v_today from ai_memory_private.today_of(p_user);
    v_field := case
        when p_events > 0 and v_today.events + p_events > ai_memory_private.limit_of('events_a_day') then 'events_a_day'
        when p_bytes > 0 and v_today.bytes + p_bytes > ai_memory_private.limit_of('bytes_a_day') then 'bytes_a_day'
        when p_erased > 0 and v_today.erased + p_erased > ai_memory_private.limit_of('erasures_a_day')
            then 'erasures_a_day'
    end;
    if v_field is not null then
        perform ai_memory_private.refuse(
            'PT429', 'quota', format('the account has reached its limit of today (%s)', v_field),
            'Nothing is lost: it is sent tomorrow (UTC). An administrator may raise the limit.', p_field => v_field
        );
    end if;
end;
$$;

-- Counts what was erased.
create function ai_memory_private.note_erased(p_user uuid, p_device_id text, p_count bigint) returns void
language plpgsql set search_path = '' as $$
begin
    if p_count > 0 then
        insert into public.ai_memory_activity as known (user_id, day, device_id, events, bytes, erased)
        values (p_user, (now() at time zone 'UTC')::date, p_device_id, 0, 0, p_count)
        on conflict (user_id, day, device_id) do update set erased = known.erased + excluded.erased;
    end if;
end;
$$;

create function ai_memory_private.check_erasures(p_count bigint) returns void
language plpgsql stable set search_path = '' as $$
begin
    if p_count > ai_memory_private.limit_of('erasures_a_call') then
        perform ai_memory_private.refuse(
            '22023', 'too_many_erasures',
            format('more than %s events to erase in one call', ai_memory_private.limit_of('erasures_a_call')),
            'Send fewer at once.'
        );
    end if;
end;
$$;

-- --- devices and documents ------------------------------------------------------------------------------------

create function ai_memory_private.check_device_limits() returns trigger
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

create trigger ai_memory_device_limits before insert on public.ai_memory_devices
for each row execute function ai_memory_private.check_device_limits();

create function ai_memory_private.check_document_limit() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    if auth.uid() is not null and not exists (
        select from public.ai_memory where user_id = new.user_id and device_id = new.device_id
    ) and (
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

create trigger ai_memory_document_limit before insert on public.ai_memory
for each row execute function ai_memory_private.check_document_limit();

-- --- pushing and erasing ----------------------------------------------------------------------------------------

create or replace function public.ai_memory_forget(p_device_id text, p_event_ids jsonb) returns integer
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

-- As in ..._ai_memory_cursor_time.sql, with the limits; and a device that stood at the head holds what it pushes, so that it
-- is level for the admins at once.
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

-- For the service role: sets a limit; answers the former value.
create function public.ai_memory_admin_set_limit(p_name text, p_value bigint) returns bigint
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_former bigint;
begin
    select value into v_former from public.ai_memory_limits where name = p_name for update;
    if v_former is null or p_value is null or p_value < 0 then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'no limit of this name, or no number from 0', 'See ai_memory_limits.',
            p_field => 'p_name'
        );
    end if;
    update public.ai_memory_limits set value = p_value where name = p_name;
    return v_former;
end;
$$;

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function public.ai_memory_admin_set_limit(text, bigint) from public, anon, authenticated, service_role;
grant execute on function public.ai_memory_admin_set_limit(text, bigint) to service_role;
