-- Views for administrators: who syncs, how much, when last, what failed. Run after the migrations, and again at any time:
-- in the SQL editor, or with psql --single-transaction.
--
--   * None of them shows the content of a memory: counts, sizes, times, ids and device names only. E-mail addresses and
--     phone numbers of auth.users are left out too; README.md shows the join for the SQL editor.
--   * Only service_role may read them. They run with the caller's rights (PostgreSQL 15 and later), so a grant by mistake
--     would show a user their own rows only.
--   * All of them read small tables (a row a user, a device, or a device and day), never the events.

drop view if exists
    public.ai_memory_admin_users, public.ai_memory_admin_devices, public.ai_memory_admin_activity,
    public.ai_memory_admin_growth, public.ai_memory_admin_stale, public.ai_memory_admin_quarantine;

create view public.ai_memory_admin_devices as
select
    d.user_id, d.device_id, d.name, d.platform, d.app_version, d.created_at, d.last_seen_at, d.revoked_at,
    d.cursor_seq, greatest(coalesce(h.seq, 0) - d.cursor_seq, 0) as behind, d.quarantined,
    octet_length(m.content) as document_bytes, m.updated_at as document_updated_at,
    d.replica_id is null as is_original_app
from public.ai_memory_devices as d
left join public.ai_memory_heads as h on h.user_id = d.user_id
left join public.ai_memory as m on m.user_id = d.user_id and m.device_id = d.device_id;
comment on view public.ai_memory_admin_devices is 'Every device: when seen, how many events behind, what it set aside.';

create view public.ai_memory_admin_users as
select
    d.user_id, min(d.created_at) as since, max(d.last_seen_at) as last_seen_at,
    count(*) as devices, count(*) filter (where d.revoked_at is not null) as revoked,
    coalesce(max(h.seq), 0) as events, coalesce(max(h.floor_seq), 0) as folded,
    sum(d.quarantined) as quarantined, coalesce(sum(octet_length(m.content)), 0) as document_bytes
from public.ai_memory_devices as d
left join public.ai_memory_heads as h on h.user_id = d.user_id
left join public.ai_memory as m on m.user_id = d.user_id and m.device_id = d.device_id
group by d.user_id;
comment on view public.ai_memory_admin_users is 'Every user: devices, events, how many of them are folded.';

create view public.ai_memory_admin_activity as
select a.day, a.user_id, a.device_id, a.events, a.bytes from public.ai_memory_activity as a;
comment on view public.ai_memory_admin_activity is 'What arrived, by UTC day, user and device.';

create view public.ai_memory_admin_growth as
with first_days as (
    select user_id, min(day) as day from public.ai_memory_activity group by user_id
), days as (
    select
        a.day, count(distinct a.user_id) as users, count(distinct (a.user_id, a.device_id)) as devices,
        sum(a.events) as events, sum(a.bytes) as bytes
    from public.ai_memory_activity as a
    group by a.day
)
select
    days.day, days.users, (select count(*) from first_days where first_days.day = days.day) as new_users,
    days.devices, days.events, days.bytes,
    sum(days.events) over (order by days.day) as events_in_all, sum(days.bytes) over (order by days.day) as bytes_in_all
from days;
comment on view public.ai_memory_admin_growth is 'By UTC day: writers, new ones, how much, how much in all.';

create view public.ai_memory_admin_stale as
select
    d.user_id, d.device_id, d.name, d.last_seen_at, d.behind,
    case when d.last_seen_at < now() - interval '7 days' then 'silent' else 'behind' end as why,
    floor(extract(epoch from now() - d.last_seen_at) / 86400)::integer as silent_days
from public.ai_memory_admin_devices as d
where d.revoked_at is null and not d.is_original_app
    and (d.last_seen_at < now() - interval '7 days' or d.behind > 1000);
comment on view public.ai_memory_admin_stale is 'Devices silent for a week, or over a thousand events behind.';

create view public.ai_memory_admin_quarantine as
select
    d.user_id, d.device_id, d.name, d.app_version, d.reported_at, code.key as code, code.value::integer as events
from public.ai_memory_devices as d cross join lateral jsonb_each_text(d.quarantine_codes) as code
where code.value::integer > 0;
comment on view public.ai_memory_admin_quarantine is 'Events that devices have set aside, by SQLSTATE, as last said.';

do $$
declare
    v_view text;
begin
    foreach v_view in array array['users', 'devices', 'activity', 'growth', 'stale', 'quarantine'] loop
        if current_setting('server_version_num')::integer >= 150000 then
            execute format('alter view public.%I set (security_invoker = on)', 'ai_memory_admin_' || v_view);
        end if;
        execute format(
            'revoke all on table public.%I from public, anon, authenticated, service_role', 'ai_memory_admin_' || v_view
        );
        execute format('grant select on table public.%I to service_role', 'ai_memory_admin_' || v_view);
    end loop;
end;
$$;
