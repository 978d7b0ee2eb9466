-- The original app's rows: keep every one, and turn it into a row of `ai_memory` if its owner has an account.
--
--   * ai_memory_legacy holds every original row for good. The next document of a device overwrites its row of
--     ai_memory; the original's last text must not be lost with it.
--   * Columns are kept as text, unknown ones as JSON: the original had text, integer and uuid ids, with and without
--     defaults, and no row may stop the upgrade.
--   * `user_id` was a phone number, an account's id, or nothing. It names an account if exactly one has that id, that
--     confirmed phone number or that confirmed e-mail. An unconfirmed number would give a memory to anyone who typed it
--     in. A bare mobile number of eleven digits is read as a Chinese one.
--   * Of two rows for one device and owner the newest becomes the document. A row of an existing account is never
--     overwritten. The others stay here; kept_because says why.
--   * moved_at: when it became a row of ai_memory. claimed_by: whose it is, moved or not. Accounts that are created
--     later get their rows by ai_memory_admin_match_legacy(), or by an administrator.
--   * The file may be run again. A project without ai_memory_original gets the empty table.

set local statement_timeout = 0; -- a large project takes longer than the two minutes of the SQL editor's role

create table if not exists public.ai_memory_legacy (
    legacy_id bigint generated always as identity primary key,
    id text,
    device_id text,
    user_id text,
    content text,
    created_at text,
    updated_at text,
    others jsonb not null default '{}', -- columns that only some originals have
    arrived_at timestamptz not null default now(),
    kept_because text,
    moved_at timestamptz,
    claimed_by uuid references auth.users (id) on delete cascade -- a deleted account takes its old rows along
);
comment on table public.ai_memory_legacy is 'Every row of the original app''s table, as it was. For admins only.';
alter table public.ai_memory_legacy enable row level security;
revoke all on table public.ai_memory_legacy from public, anon, authenticated, service_role;
revoke all on sequence public.ai_memory_legacy_legacy_id_seq from public, anon, authenticated, service_role;
grant select on table public.ai_memory_legacy to service_role;

-- What waits and why, without its content.
create or replace view public.ai_memory_admin_legacy as
select
    legacy_id, id, device_id, user_id, octet_length(content) as content_bytes, created_at, updated_at,
    kept_because, moved_at, claimed_by
from public.ai_memory_legacy;

do $$
begin
    if current_setting('server_version_num')::integer >= 150000 then
        alter view public.ai_memory_admin_legacy set (security_invoker = on);
    end if;
end;
$$;

revoke all on table public.ai_memory_admin_legacy from public, anon, authenticated, service_role;
grant select on table public.ai_memory_admin_legacy to service_role;

-- A text as a time (also Unix seconds or milliseconds); null if it is none.
create or replace function ai_memory_private.time_of(p_text text) returns timestamptz
language plpgsql stable set search_path = '' as $$
declare
    v_time timestamptz;
begin
    v_time := case
        when p_text ~ '^\d{13}$' then to_timestamp(p_text::double precision / 1000)
        when p_text ~ '^\d{10}$' then to_timestamp(p_text::double precision)
        else p_text::timestamptz
    end;
    return case when isfinite(v_time) then v_time end;
exception when data_exception then
    return null;
end;
$$;

-- A phone number in any notation as the digits that Auth stores (country code first, no plus); null for anything else.
create or replace function ai_memory_private.phone_digits(p_text text) returns text
language sql immutable set search_path = '' as $$
    select case
        when said !~ '^(\+|00)?\d{6,15}$' then null
        when said ~ '^1[3-9]\d{9}$' then '86' || said
        else regexp_replace(said, '^(\+|00)', '')
    end
    from regexp_replace(translate(p_text, '０１２３４５６７８９＋（）－', '0123456789+()-'), '[\s().·-]', '', 'g') as said;
$$;

-- The one account that this id, phone number or e-mail names; null for none or several. Each comparison has an index.
create or replace function ai_memory_private.account_of(p_owner text) returns uuid
language sql stable set search_path = '' as $$
    select case when count(*) = 1 then (array_agg(u.id))[1] end
    from lower(btrim(p_owner)) as said
    cross join ai_memory_private.phone_digits(p_owner) as digits
    join auth.users as u on (
        u.id = case when said ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then said::uuid end
        or (u.email = said and u.email_confirmed_at is not null)
        or (u.phone in (digits, '+' || digits) and u.phone_confirmed_at is not null)
    )
    where u.deleted_at is null and u.is_anonymous is not true;
$$;

-- Turns the row into a row of ai_memory. Returns null when done, else the reason; then nothing has changed.
create or replace function ai_memory_private.place_legacy(p_row public.ai_memory_legacy, p_user uuid) returns text
language plpgsql set search_path = '' as $$
begin
    if p_row.content is null then
        return 'no_content';
    elsif octet_length(p_row.content) > 1048576 then
        return 'too_large';
    elsif coalesce(char_length(p_row.device_id), 0) not between 1 and 128 then
        return 'no_device';
    elsif exists (
        select from public.ai_memory_devices
        where user_id = p_user and device_id = p_row.device_id and revoked_at is not null
    ) then
        return 'device_revoked';
    end if;
    insert into public.ai_memory (id, user_id, device_id, content, created_at, updated_at)
    values (
        case when char_length(p_row.id) between 1 and 128
            and not exists (select from public.ai_memory where id = p_row.id)
            then p_row.id else gen_random_uuid()::text end,
        p_user, p_row.device_id, p_row.content,
        least(coalesce(ai_memory_private.time_of(p_row.created_at), now()), now()),
        least(coalesce(ai_memory_private.time_of(p_row.updated_at), now()), now())
    )
    on conflict (user_id, device_id) do nothing;
    return case when not found then 'device_has_document' end;
end;
$$;

-- Gives the row to the account, as a document if possible.
create or replace function ai_memory_private.settle_legacy(p_row public.ai_memory_legacy, p_user uuid) returns text
language plpgsql set search_path = '' as $$
declare
    v_why constant text := ai_memory_private.place_legacy(p_row, p_user);
begin
    update public.ai_memory_legacy
    set claimed_by = p_user, kept_because = v_why, moved_at = case when v_why is null then now() end
    where legacy_id = p_row.legacy_id;
    return v_why;
end;
$$;

-- Gives every unclaimed row to the account it names, newest first; returns how many became documents.
create or replace function public.ai_memory_admin_match_legacy() returns integer
language plpgsql security definer set search_path = '' as $$
declare
    v_row public.ai_memory_legacy;
    v_user uuid;
    v_moved integer := 0;
begin
    for v_row in
        select * from public.ai_memory_legacy where claimed_by is null
        order by
            ai_memory_private.time_of(updated_at) desc nulls last,
            ai_memory_private.time_of(created_at) desc nulls last,
            legacy_id desc
        for update
    loop
        v_user := ai_memory_private.account_of(v_row.user_id);
        if v_user is not null then
            v_moved := v_moved + (ai_memory_private.settle_legacy(v_row, v_user) is null)::integer;
        else
            update public.ai_memory_legacy
            set kept_because = case when btrim(user_id) <> '' then 'owner_unknown' else 'no_owner' end
            where legacy_id = v_row.legacy_id;
        end if;
    end loop;
    return v_moved;
end;
$$;

-- Gives a row to an account that an administrator names. Returns {"moved", "kept_because"}; a row that cannot become a
-- document is claimed all the same.
create or replace function public.ai_memory_admin_claim_legacy(p_legacy_id bigint, p_user uuid) returns jsonb
language plpgsql security definer set search_path = '' as $$
declare
    v_row public.ai_memory_legacy;
    v_why text;
begin
    select * into v_row from public.ai_memory_legacy where legacy_id = p_legacy_id for update;
    if v_row.legacy_id is null or v_row.moved_at is not null then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'no row waits under this number', 'See ai_memory_admin_legacy.',
            p_field => 'p_legacy_id'
        );
    end if;
    if not exists (select from auth.users where id = p_user) then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'no account has this id', 'See auth.users.', p_field => 'p_user'
        );
    end if;
    v_why := ai_memory_private.settle_legacy(v_row, p_user);
    return jsonb_build_object('moved', v_why is null, 'kept_because', v_why);
end;
$$;

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_admin_match_legacy(), public.ai_memory_admin_claim_legacy(bigint, uuid)
from public, anon, authenticated, service_role;
grant execute on function
    public.ai_memory_admin_match_legacy(), public.ai_memory_admin_claim_legacy(bigint, uuid)
to service_role;

do $$
begin
    if to_regclass('public.ai_memory_original') is null then
        return;
    end if;
    insert into public.ai_memory_legacy (id, device_id, user_id, content, created_at, updated_at, others)
    select
        kept ->> 'id', kept ->> 'device_id', kept ->> 'user_id', kept ->> 'content', kept ->> 'created_at',
        kept ->> 'updated_at',
        kept - array['id', 'device_id', 'user_id', 'content', 'created_at', 'updated_at']
    from (select to_jsonb(each_row.*) as kept from public.ai_memory_original as each_row) as original;
    begin
        drop table public.ai_memory_original;
    exception when dependent_objects_still_exist then -- a view or key of another program; the table stays, closed
        alter table public.ai_memory_original rename to ai_memory_original_copied;
        comment on table public.ai_memory_original_copied is 'Closed; every row lies in ai_memory_legacy. Drop it when '
            'nothing depends on it any more.';
    end;
    perform public.ai_memory_admin_match_legacy();
end;
$$;
