-- Who may call, and what an event must look like.
--
-- Decided here:
--   * Every refusal carries DETAIL as JSON: {"kind": ..., "event_id"?: ..., "field"?: ...}. A program reads DETAIL, a
--     person reads MESSAGE and HINT. No refusal repeats content.
--   * 42501 for "not you" (PostgREST: 403), 22023 for "not like this" (400), a batch too large included: whoever halves a
--     refused batch gets it through, while 54000 would be a 500 at PostgREST and look like an outage.
--   * An empty answer must never stand for a lost login, so a call without a user raises.
--   * The owner is auth.uid() and nothing else; no argument and no field of an event can name another.
--   * An event belongs to the device named in the call. Its device_id may be missing or the same; another one is
--     refused. A token is the account's, not the device's, so this guards against mistakes, not against a thief; and
--     a rule can be loosened later but not tightened. Events made under an earlier device id are sent in a call that
--     names that id (registered first). Its replica_id may be an earlier replica of the device: after a restored
--     server the device pushes again what it made before it was re-minted.

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
language sql stable set search_path = '' as $$
    select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
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
    return auth.uid();
end;
$$;

-- A JSON argument as itself, or as a JSON string that holds it: some gateways encode jsonb arguments twice.
create function ai_memory_private.unwrapped(p_value jsonb) returns jsonb
language sql immutable set search_path = '' as $$
    select nullif(case when jsonb_typeof(p_value) = 'string' then (p_value #>> '{}')::jsonb else p_value end, 'null');
$$;

-- The first field of an event that breaks a rule, or null. No cast here may raise: it would not name the event.
create function ai_memory_private.event_problem(p_event jsonb, p_device_id text) returns text
language sql immutable set search_path = '' as $$
    select case
        when jsonb_typeof(p_event) <> 'object' then 'event'
        when octet_length(p_event::text) > 65536 then 'size'
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
                when p_event ->> 'reach' <> 'cloud' then 'reach' -- what is local should not be here; it goes no further
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

-- Raises on the first event that is not acceptable, naming it, so that a client can set aside that one event.
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
    if v_field is null then -- two events under one number: one of them is the culprit
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
