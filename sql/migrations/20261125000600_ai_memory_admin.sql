-- For administrators: activity by day, what devices have in quarantine, folding, limits, erasing a user.
--
--   * A day's activity is counted when events arrive, one row a user, device and day, by a statement trigger in the
--     push's own transaction. Counting afterwards would read every event, and folded ones twice.
--   * What a device has in quarantine exists on the device alone, so the device reports it: how many events by
--     SQLSTATE, never which ones and nothing of their content.
--   * Folding (ai_memory_admin_checkpoint) raises floor_seq in the transaction that packs the events, only past what
--     every device seen in the last days has acknowledged: a page of rows is cheaper than a page of a checkpoint. The
--     last checkpoint is filled while it is small, so folding every night does not leave a row a night. Deleting the
--     rows (ai_memory_admin_prune) is a step of its own. Each step is bounded and may be killed and repeated.
--   * Erasing a user (ai_memory_admin_purge) revokes the devices first, so none writes behind it. They stay as bare
--     revoked ids: an unknown device would register again and push its copy. Copies on the devices are their owner's.
--     With p_account the row of auth.users goes too, and with it the revoked ids: the tokens die with the account.

create function ai_memory_private.count_activity() returns trigger
language plpgsql set search_path = '' as $$
begin
    insert into public.ai_memory_activity as known (user_id, day, device_id, events, bytes)
    select user_id, (server_ts at time zone 'UTC')::date, device_id, count(*), sum(bytes)
    from arrived group by 1, 2, 3
    on conflict (user_id, day, device_id) do update set
        events = known.events + excluded.events, bytes = known.bytes + excluded.bytes;
    return null;
end;
$$;

create trigger ai_memory_count_activity after insert on public.ai_memory_events
referencing new table as arrived for each statement execute function ai_memory_private.count_activity();

-- p_codes: {"22023": 2, ...}, how many events the device has in quarantine by the SQLSTATE of their refusal.
create function public.ai_memory_report(p_device_id text, p_codes jsonb) returns void
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(v_user, p_device_id);
    v_codes constant jsonb := coalesce(ai_memory_private.unwrapped(p_codes), '{}');
begin
    if jsonb_typeof(v_codes) <> 'object' or (
        select count(*) > 50 or not coalesce(bool_and(
            key ~ '^[A-Za-z0-9_]{0,32}$' and jsonb_typeof(value) = 'number' and value::text ~ '^\d{1,8}$'
        ), true)
        from jsonb_each(case when jsonb_typeof(v_codes) = 'object' then v_codes else '{}' end)
    ) then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'codes are counts by SQLSTATE', 'Send {"22023": 2}.', p_field => 'p_codes'
        );
    end if;
    update public.ai_memory_devices set
        quarantine_codes = v_codes, reported_at = now(),
        quarantined = (select coalesce(sum(value::integer), 0) from jsonb_each_text(v_codes))
    where user_id = v_user and device_id = v_device.device_id;
end;
$$;

-- Packs at most p_most events that every device seen in the last p_days holds, and raises floor_seq. Call it until
-- `done`. `held_by` is the device that keeps the floor from rising further; null if the floor is at the head.
create function public.ai_memory_admin_checkpoint(
    p_user uuid, p_days integer default 30, p_most integer default 5000
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_events constant integer := 500; -- per checkpoint: half of the longest page
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
    where user_id = p_user and revoked_at is null and replica_id is not null -- the original app pulls nothing
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
        returning through_seq into strict v_floor; -- fails here, with nothing done, if a number is missing
    end loop;
    update public.ai_memory_heads set floor_seq = v_floor where user_id = p_user and floor_seq < v_floor;
    return jsonb_build_object(
        'folded', v_floor - v_head.floor_seq, 'floor', v_floor, 'head', v_head.seq,
        'done', v_floor >= v_limit, 'held_by', v_slowest.device_id
    );
end;
$$;

-- Deletes at most p_most rows that a checkpoint holds. Call it until it returns fewer.
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

-- Sets a limit; returns the former value.
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

-- Deletes at most p_most events of a user, or part of what remains. Call it until `done`.
create function public.ai_memory_admin_purge(
    p_user uuid, p_account boolean default false, p_most integer default 5000
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_events integer;
    v_folded bigint := 0;
    v_documents integer := 0;
    v_devices integer;
    v_done boolean := false;
begin
    perform from public.ai_memory_heads where user_id = p_user for update;
    update public.ai_memory_devices set
        revoked_at = coalesce(revoked_at, now()), name = null, platform = null, app_version = null, public_key = null,
        quarantined = 0, quarantine_codes = '{}', reported_at = null, cursor_seq = 0
    where user_id = p_user and (revoked_at is null or num_nonnulls(name, platform, app_version, public_key) > 0);
    get diagnostics v_devices = row_count;
    delete from public.ai_memory_events where user_id = p_user and seq in (
        select seq from public.ai_memory_events where user_id = p_user order by seq limit greatest(p_most, 1)
    );
    get diagnostics v_events = row_count;
    if v_events < p_most then
        with gone as (
            delete from public.ai_memory_checkpoints where user_id = p_user and through_seq in (
                select through_seq from public.ai_memory_checkpoints where user_id = p_user
                order by through_seq limit 1 + greatest(p_most, 1) / 500
            )
            returning through_seq - from_seq + 1 as events
        )
        select coalesce(sum(events), 0) into v_folded from gone;
        v_done := v_folded = 0;
    end if;
    if v_done then
        delete from public.ai_memory where user_id = p_user;
        get diagnostics v_documents = row_count;
        delete from public.ai_memory_legacy where claimed_by = p_user;
        delete from public.ai_memory_activity where user_id = p_user;
        delete from public.ai_memory_heads where user_id = p_user;
        if p_account then
            delete from auth.users where id = p_user;
        end if;
    end if;
    return jsonb_build_object(
        'events', v_events, 'folded', v_folded, 'documents', v_documents, 'devices', v_devices, 'done', v_done
    );
end;
$$;

revoke all on function ai_memory_private.count_activity() from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_report(text, jsonb),
    public.ai_memory_admin_checkpoint(uuid, integer, integer),
    public.ai_memory_admin_prune(uuid, integer),
    public.ai_memory_admin_set_limit(text, bigint),
    public.ai_memory_admin_purge(uuid, boolean, integer)
from public, anon, authenticated, service_role;
grant execute on function
    public.ai_memory_admin_checkpoint(uuid, integer, integer),
    public.ai_memory_admin_prune(uuid, integer),
    public.ai_memory_admin_set_limit(text, bigint),
    public.ai_memory_admin_purge(uuid, boolean, integer)
to service_role;
