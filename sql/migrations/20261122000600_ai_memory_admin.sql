-- What administrators ask about: how much is written each day, what devices have set aside, and erasing a user.
--
-- Decided here, and why:
--   * The activity of a day is counted when events arrive, one row a user, device and day, by a statement trigger in
--     the push's own transaction. Counting it afterwards would read every event, and folded ones twice.
--   * What a device has in quarantine exists on the device alone, so the device says it: how many events by which
--     SQLSTATE, never which ones and nothing of their content (`ai_memory_report`, after its first round and whenever
--     it changes). It is what the device last said, with the time.
--   * Erasing goes in bounded steps that may be killed and repeated. The devices are revoked first, so that nobody
--     writes behind the eraser; they stay as bare revoked ids, because a device that were merely unknown would
--     register again and push its own copy. Copies on the devices themselves are their owner's. With p_account the
--     row of auth.users goes as well, and with it the revoked ids: the tokens die with the account.

create table public.ai_memory_activity (
    user_id uuid not null references auth.users (id) on delete cascade,
    day date not null, -- UTC, by the server's clock
    device_id text not null,
    events bigint not null,
    bytes bigint not null,
    primary key (user_id, day, device_id)
);
comment on table public.ai_memory_activity is 'Events that arrived, by user, UTC day and device.';
create index ai_memory_activity_days on public.ai_memory_activity (day);
alter table public.ai_memory_activity enable row level security;
revoke all on table public.ai_memory_activity from public, anon, authenticated, service_role;
grant select on table public.ai_memory_activity to service_role;

insert into public.ai_memory_activity (user_id, day, device_id, events, bytes)
select user_id, (server_ts at time zone 'UTC')::date, device_id, count(*), sum(bytes)
from (
    select e.user_id, e.server_ts, e.device_id, e.bytes
    from public.ai_memory_events as e
    join public.ai_memory_heads as h on h.user_id = e.user_id and e.seq > h.floor_seq
    union all
    select c.user_id, (event ->> 'server_ts')::timestamptz, event ->> 'device_id', octet_length(event::text)
    from public.ai_memory_checkpoints as c cross join lateral jsonb_array_elements(c.events) as event
) as stored
group by 1, 2, 3;

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

alter table public.ai_memory_devices
    add column quarantined integer not null default 0 check (quarantined >= 0),
    add column quarantine_codes jsonb not null default '{}' check (octet_length(quarantine_codes::text) <= 4096),
    add column reported_at timestamptz;
comment on column public.ai_memory_devices.quarantine_codes is 'How many set-aside events by SQLSTATE, as the device '
    'last said at reported_at.';

-- p_codes: {"22023": 2, ...}, how many events the device has set aside by the code they were refused with.
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

-- Deletes at most p_most events of a user, or what is left of the rest. Call it until `done`. `left` counts events.
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
    public.ai_memory_report(text, jsonb), public.ai_memory_admin_purge(uuid, boolean, integer)
from public, anon, authenticated, service_role;
grant execute on function public.ai_memory_report(text, jsonb) to authenticated;
grant execute on function public.ai_memory_admin_purge(uuid, boolean, integer) to service_role;
