-- Who may call, what an event must look like, and how much one account may do.
--
--   * Every refusal carries DETAIL as JSON: {"kind": ..., "event_id"?: ..., "field"?: ...}. A program reads DETAIL, a
--     person reads MESSAGE and HINT. No refusal repeats content.
--   * 42501 (PostgREST: 403) refuses the caller, 22023 (400) refuses the request. A batch that is too large is 22023:
--     half of it gets through, while 54000 would be a 500 at PostgREST and look like an outage.
--   * A call without a user raises: an empty answer must not hide a lost login.
--   * The owner is auth.uid(). No argument and no field of an event can name another.
--   * An event belongs to the device that the call names; its device_id may be missing or the same. A token is the
--     account's, not the device's, so this guards against mistakes, not against a thief. Events made under an earlier
--     device id are sent in a call that names that id, which is registered first. replica_id may be an earlier replica
--     of the device: after a server was restored, the device sends again what it made before it became a new replica.
--   * A limit that time lifts is PT429 (PostgREST: 429): a client of any version waits and keeps its events. A limit
--     that only an administrator or the user lifts is 42501. `kind` is `quota`, `field` the limit's name. A day is a
--     UTC day by the server's clock. Limits are compared under the head row's lock, so parallel calls cannot exceed
--     them. Administrators' functions and the SQL editor (no auth.uid()) are not limited.
--   * Functions that are called for every row or look up events are in plpgsql: its statements are planned with the
--     values they are called with, so the plan holds one partition. A function in SQL is planned for any user, over all
--     sixteen, again at every call; with one the poll took three times as long.

-- Raises a refusal: MESSAGE and HINT for a person, DETAIL as JSON for the client.
create function ai_memory_private.refuse(
    p_code text, p_kind text, p_message text, p_hint text, p_event_id text default null, p_field text default null
) returns void language plpgsql set search_path = '' as $$
begin
    raise exception using
        errcode = p_code,
        message = p_message,
        hint = p_hint,
        detail = jsonb_strip_nulls(
            jsonb_build_object('kind', p_kind, 'event_id', left(p_event_id, 128), 'field', p_field)
        )::text;
end;
$$;

create function ai_memory_private.check_id(p_name text, p_value text) returns void
language plpgsql immutable set search_path = '' as $$
begin
    if p_value is null or char_length(p_value) not between 1 and 128 then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', format('%s must have 1 to 128 characters', p_name), 'Send the id.',
            p_field => p_name
        );
    end if;
end;
$$;

create function ai_memory_private.rfc3339(p_time timestamptz) returns text
language plpgsql stable set search_path = '' as $$
begin
    return to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end;
$$;

-- Some gateways encode jsonb arguments twice: unpack a JSON string that holds the value.
create function ai_memory_private.unwrapped(p_value jsonb) returns jsonb
language sql immutable set search_path = '' as $$
    select nullif(case when jsonb_typeof(p_value) = 'string' then (p_value #>> '{}')::jsonb else p_value end, 'null');
$$;

-- --- the caller ---------------------------------------------------------------------------------------------

create function ai_memory_private.session_of_caller() returns text
language plpgsql stable set search_path = '' as $$
begin
    return nullif(left(auth.jwt() ->> 'session_id', 128), '');
end;
$$;

create function ai_memory_private.is_of_revoked_device(p_user uuid, p_session text) returns boolean
language plpgsql stable set search_path = '' as $$
begin
    return exists (
        select from ai_memory_private.sessions as s
        join public.ai_memory_devices as d on d.user_id = s.user_id and d.device_id = s.device_id
        where s.user_id = p_user and s.session_id = p_session and s.is_own and d.revoked_at is not null
    );
end;
$$;

-- For policies, which run as the caller and have no access to ai_memory_private.
create function public.ai_memory_session_is_open() returns boolean
language plpgsql stable security definer set search_path = '' as $$
begin
    return not ai_memory_private.is_of_revoked_device(auth.uid(), ai_memory_private.session_of_caller());
end;
$$;

create function ai_memory_private.signed_in_user() returns uuid
language plpgsql stable set search_path = '' as $$
begin
    if auth.uid() is null then
        perform ai_memory_private.refuse(
            '42501', 'not_signed_in', 'not signed in', 'Log in and call again with the user''s access token.'
        );
    end if;
    if coalesce((auth.jwt() ->> 'is_anonymous')::boolean, false) then
        perform ai_memory_private.refuse(
            '42501', 'anonymous_user', 'anonymous users have no cloud memory', 'Log in with a phone number or e-mail.'
        );
    end if;
    if ai_memory_private.is_of_revoked_device(auth.uid(), ai_memory_private.session_of_caller()) then
        perform ai_memory_private.refuse(
            '42501', 'device_revoked', 'this device was revoked',
            'A revoked device stays revoked; see the list of devices.'
        );
    end if;
    return auth.uid();
end;
$$;

-- --- events -------------------------------------------------------------------------------------------------

-- The first field of an event that breaks a rule, or null. A cast that fails here would not name the event, so nothing
-- casts before it has matched a pattern.
create function ai_memory_private.event_problem(p_event jsonb, p_device_id text) returns text
language sql immutable set search_path = '' as $$
    select case
        when jsonb_typeof(p_event) <> 'object' then 'event'
        when octet_length(p_event::text) > 65536 then 'size'
        when p_event @? 'strict $.**{101}' then 'depth'
        else coalesce(
            (
                select rule.field
                from (
                    values
                        ('event_id', true, 128), ('type', true, 128), ('ts', true, 64), ('hlc', true, 17),
                        ('origin', true, 32), ('replica_id', false, 128), ('device_id', false, 128),
                        ('project_id', false, 256), ('project_path', false, 4096), ('session_id', false, 256),
                        ('local_date', false, 10), ('reach', false, 16)
                ) as rule (field, required, longest)
                where case coalesce(jsonb_typeof(p_event -> rule.field), 'null')
                    when 'string'
                        then char_length(p_event ->> rule.field) not between rule.required::integer and rule.longest
                    when 'null' then rule.required
                    else true
                end
                limit 1
            ),
            case
                when p_event ->> 'device_id' <> p_device_id then 'device_id'
                when p_event ->> 'replica_id' = '' then 'replica_id'
                when p_event ->> 'reach' <> 'cloud' then 'reach' -- a local event does not belong here
                when p_event ->> 'hlc' !~ '^[0-9a-f]{12}-[0-9a-f]{4}$' then 'hlc'
                when p_event ->> 'local_date' !~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$' then 'local_date'
                when jsonb_typeof(p_event -> 'payload') is distinct from 'object' then 'payload'
                when jsonb_typeof(p_event -> 'replica_seq') is distinct from 'number'
                    or p_event ->> 'replica_seq' !~ '^[1-9]\d{0,17}$' then 'replica_seq'
                when jsonb_typeof(p_event -> 'schema_version') is distinct from 'number'
                    or p_event ->> 'schema_version' !~ '^\d{1,9}$' then 'schema_version'
                when jsonb_typeof(p_event -> 'utc_offset') not in ('number', 'null')
                    or p_event ->> 'utc_offset' !~ '^-?(\d{1,3}|1[0-3]\d\d|14[0-3]\d|1440)$' then 'utc_offset'
            end
        )
    end;
$$;

-- Refuses the first unacceptable event and names it, so that the client can quarantine that one event.
create function ai_memory_private.check_events(p_events jsonb, p_device_id text, p_replica_id text) returns void
language plpgsql stable set search_path = '' as $$
declare
    v_event_id text;
    v_field text;
begin
    if jsonb_typeof(p_events) <> 'array' then
        perform ai_memory_private.refuse('22023', 'bad_request', 'p_events must be an array', 'Send a JSON array.');
    end if;
    if jsonb_array_length(p_events) > 500 or octet_length(p_events::text) > 2097152 then
        perform ai_memory_private.refuse(
            '22023', 'batch_too_large', 'more than 500 events or 2 MiB in one call', 'Send fewer events at once.'
        );
    end if;
    select left(item.event ->> 'event_id', 128), problem.field into v_event_id, v_field
    from jsonb_array_elements(p_events) with ordinality as item (event, place)
    cross join lateral ai_memory_private.event_problem(item.event, p_device_id) as problem (field)
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
    if v_field is not null then
        perform ai_memory_private.refuse(
            '22023', 'bad_event', format('event refused: %s', v_field),
            'Set this event aside; the others can be sent without it.', v_event_id, v_field
        );
    end if;
end;
$$;

-- --- limits -------------------------------------------------------------------------------------------------

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

-- Refuses what exceeds a limit of the day. The caller holds the head row.
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

-- Counts erased events.
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

-- Called before any lock or work. A client that is refused halves its batch.
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

create trigger ai_memory_device_limits before insert on public.ai_memory_devices
for each row execute function ai_memory_private.check_device_limits();

create trigger ai_memory_document_limit before insert on public.ai_memory
for each row execute function ai_memory_private.check_document_limit();

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function public.ai_memory_session_is_open() from public, anon, authenticated, service_role;
