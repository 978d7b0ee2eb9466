-- Small things: sequences, a view with its owner's rights, times of a direct insert, JSON that is nested without end.
--
-- Decided here:
--   * A hosted project grants new sequences to everybody. Nobody but the owner needs ours.
--   * `updated_at` of a direct write is the device's word. A time that is none, or lies before 2000 or more than a day ahead,
--     becomes the server's, so that it cannot lead every list for ever.
--   * An event may be nested 100 levels deep; ours have five. Deeper JSON costs stack and time at every function that walks it.

revoke all on all sequences in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on sequence public.ai_memory_legacy_legacy_id_seq from public, anon, authenticated, service_role;

do $$
begin
    if current_setting('server_version_num')::integer >= 150000 then
        alter view public.ai_memory_admin_legacy set (security_invoker = on);
    end if;
end;
$$;

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

-- As in ..._ai_memory_rules.sql, and the depth.
create or replace function ai_memory_private.event_problem(p_event jsonb, p_device_id text) returns text
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

revoke all on function ai_memory_private.bound_times() from public, anon, authenticated, service_role;
