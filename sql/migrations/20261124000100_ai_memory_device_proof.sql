-- Who may speak for a device: a proof of its key at a takeover, and the sessions that belong to it.
--
-- Decided here (docs/decisions/003-device-proof.md has the reasons):
--   * PostgreSQL has no Ed25519, so the proof is a secret that the client derives from its device key. The device shows
--     it when it registers; ai_memory_devices keeps its SHA-256. The secret has 256 random bits, so the hash tells nothing.
--   * A takeover (p_takeover) needs the proof. A device that registered before this migration has none: its next
--     registration stores one.
--   * p_proof_next is the SHA-256 of the secret from now on, for a device that takes over with its old key and has
--     already made a new one. Without it the secret that was shown stays.
--   * A registration binds the session of its token (the claim session_id) to the device. A device with a proof takes
--     calls of bound sessions only; another session registers first, with the proof.
--   * The first device that a session registers with a public key owns the session. When that device is revoked, every
--     call and every read of the session is refused, whatever device it names.
--   * Without the proof a device is still taken when its replica is silent: after 10 minutes, because a machine that
--     lost its key must come back without help; after a day when the session belongs to another device.
--   * Tokens without session_id are not bound; then a takeover needs the proof, and the rest is as before.

alter table public.ai_memory_devices
    add column proof_sha256 text constraint ai_memory_devices_proof check (proof_sha256 ~ '^[0-9a-f]{64}$');
comment on column public.ai_memory_devices.proof_sha256 is 'SHA-256 of the secret that a takeover has to show.';

create table ai_memory_private.sessions (
    user_id uuid not null,
    session_id text not null,
    device_id text not null,
    is_own boolean not null, -- the device that the session belongs to; the others are former ids of one installation
    bound_at timestamptz not null default now(),
    primary key (user_id, session_id, device_id),
    foreign key (user_id, device_id) references public.ai_memory_devices (user_id, device_id) on delete cascade,
    constraint sessions_sizes check (char_length(session_id) between 1 and 128)
);
create unique index sessions_own on ai_memory_private.sessions (user_id, session_id) where is_own;
create index sessions_devices on ai_memory_private.sessions (user_id, device_id);
alter table ai_memory_private.sessions enable row level security;
revoke all on table ai_memory_private.sessions from public, anon, authenticated, service_role;

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

-- For the policies below, which run as the caller and may not look into ai_memory_private.
create function public.ai_memory_session_is_open() returns boolean
language plpgsql stable security definer set search_path = '' as $$
begin
    return not ai_memory_private.is_of_revoked_device(auth.uid(), ai_memory_private.session_of_caller());
end;
$$;

create or replace function ai_memory_private.signed_in_user() returns uuid
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

create policy ai_memory_heads_session on public.ai_memory_heads as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_devices_session on public.ai_memory_devices as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_events_session on public.ai_memory_events as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_session on public.ai_memory as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

-- --- speaking for a device -----------------------------------------------------------------------------------

create function ai_memory_private.proof_hash(p_proof text) returns text
language sql immutable set search_path = '' as $$
    select encode(sha256(convert_to(p_proof, 'UTF8')), 'hex');
$$;

drop function ai_memory_private.hold_device(uuid, text, text, text);

-- Null when the replica now speaks for the device, 'device_conflict' when it may not. p_registers: the call shows a proof
-- if it has one, so the lack of one is not a session that has yet to register.
create function ai_memory_private.hold_device(
    p_user uuid, p_device_id text, p_replica_id text,
    p_takeover text default null, p_proof text default null, p_registers boolean default false
) returns text language plpgsql set search_path = '' as $$
declare
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(p_user, p_device_id);
    v_session constant text := ai_memory_private.session_of_caller();
    v_mine constant boolean := v_device.replica_id is not distinct from p_replica_id;
    v_proven constant boolean := v_device.proof_sha256 is null
        or coalesce(v_device.proof_sha256 = ai_memory_private.proof_hash(p_proof), false);
    v_speaks boolean := v_proven or v_session is null;
    v_silence interval := interval '10 minutes';
begin
    perform ai_memory_private.check_id('p_replica_id', p_replica_id);
    if not v_speaks then
        v_speaks := exists (
            select from ai_memory_private.sessions
            where user_id = p_user and session_id = v_session and device_id = p_device_id
        );
        if not v_speaks and exists (
            select from ai_memory_private.sessions where user_id = p_user and session_id = v_session and is_own
        ) then
            v_silence := interval '1 day';
        end if;
    end if;
    if not coalesce(
        v_device.replica_id is null
            or (v_mine and v_speaks)
            or (v_device.replica_id = p_takeover and v_proven)
            or ((v_speaks or p_registers) and v_device.last_seen_at <= now() - v_silence),
        false
    ) then
        return 'device_conflict';
    end if;
    if v_mine and v_device.last_seen_at > now() - interval '1 minute' then
        return null;
    end if;
    -- compare-and-swap: of two that take a silent device at once, one gets it
    update public.ai_memory_devices set replica_id = p_replica_id, last_seen_at = now()
    where user_id = p_user and device_id = p_device_id
        and (replica_id is not distinct from v_device.replica_id or replica_id = p_replica_id);
    return case when found then null else 'device_conflict' end;
end;
$$;

-- Notes that the caller's session speaks for the device. p_own: the device has shown a public key of its own.
create function ai_memory_private.bind_session(p_user uuid, p_device_id text, p_own boolean) returns void
language plpgsql set search_path = '' as $$
declare
    v_session constant text := ai_memory_private.session_of_caller();
begin
    if v_session is null then
        return;
    end if;
    insert into ai_memory_private.sessions as known (user_id, session_id, device_id, is_own)
    values (p_user, v_session, p_device_id, p_own and not exists (
        select from ai_memory_private.sessions where user_id = p_user and session_id = v_session and is_own
    ))
    on conflict (user_id, session_id, device_id) do update set is_own = true
    where excluded.is_own and not known.is_own;
end;
$$;

create function ai_memory_private.check_proof(p_name text, p_value text) returns void
language plpgsql immutable set search_path = '' as $$
begin
    if p_value !~ '^[0-9a-f]{64}$' then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', format('%s must be 64 hexadecimal digits', p_name), 'Send 32 bytes in hexadecimal.',
            p_field => p_name
        );
    end if;
end;
$$;

drop function public.ai_memory_register_device(text, text, text, text, text, text, text);

create function public.ai_memory_register_device(
    p_device_id text,
    p_replica_id text,
    p_name text default null,
    p_platform text default null,
    p_app_version text default null,
    p_public_key text default null,
    p_takeover text default null,
    p_proof text default null,
    p_proof_next text default null
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_head constant public.ai_memory_heads := ai_memory_private.head_of(v_user, p_lock => true);
    v_before public.ai_memory_devices;
    v_error text;
    v_device public.ai_memory_devices;
begin
    perform ai_memory_private.check_id('p_device_id', p_device_id);
    perform ai_memory_private.check_id('p_replica_id', p_replica_id);
    perform ai_memory_private.check_key(v_user, p_device_id, p_public_key);
    perform ai_memory_private.check_proof('p_proof', p_proof);
    perform ai_memory_private.check_proof('p_proof_next', p_proof_next);
    insert into public.ai_memory_devices (user_id, device_id, replica_id)
    values (v_user, p_device_id, p_replica_id)
    on conflict (user_id, device_id) do nothing;
    select * into v_before from public.ai_memory_devices where user_id = v_user and device_id = p_device_id;
    v_error := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id, p_takeover, p_proof, true);
    if v_error is null then
        update public.ai_memory_devices set
            name = case when named_at is null then coalesce(p_name, name) else name end,
            platform = coalesce(p_platform, platform),
            app_version = coalesce(p_app_version, app_version),
            public_key = coalesce(p_public_key, public_key),
            -- an older client that took a silent device shows none: the proof of the former holder would lock it out
            proof_sha256 = coalesce(
                p_proof_next, ai_memory_private.proof_hash(p_proof),
                case when v_before.replica_id = p_replica_id then proof_sha256 end
            )
        where user_id = v_user and device_id = p_device_id;
        perform ai_memory_private.bind_session(v_user, p_device_id, p_public_key is not null);
    end if;
    select * into v_device from public.ai_memory_devices where user_id = v_user and device_id = p_device_id;
    return jsonb_strip_nulls(jsonb_build_object(
        'device_id', v_device.device_id, 'replica_id', v_device.replica_id, 'name', v_device.name,
        'epoch', v_head.epoch, 'head', v_head.seq, 'floor', v_head.floor_seq,
        'schema_version', public.ai_memory_schema_version(),
        'server_time', ai_memory_private.rfc3339(clock_timestamp()), 'error', v_error,
        -- whoever lost its database and not its key may name the replica of this answer in p_takeover
        'proven', case when v_before.proof_sha256 = ai_memory_private.proof_hash(p_proof) then true end
    ));
end;
$$;

-- --- revoking ---------------------------------------------------------------------------------------------------

-- Deletes the sessions that belong to a device from Auth, with their refresh tokens. `known`: sessions of it that have
-- registered here; `ended`: how many Auth still had. `error`: the SQLSTATE, where this project does not let us delete.
create function ai_memory_private.end_sessions(p_user uuid, p_device_id text) returns jsonb
language plpgsql set search_path = '' as $$
declare
    v_sessions constant text[] := array(
        select session_id from ai_memory_private.sessions
        where user_id = p_user and device_id = p_device_id and is_own
    );
    v_ended integer := 0;
    v_error text;
begin
    begin
        delete from auth.sessions where user_id = p_user and id::text = any (v_sessions);
        get diagnostics v_ended = row_count;
    exception when insufficient_privilege or undefined_table or undefined_column then
        v_error := sqlstate;
    end;
    return jsonb_build_object('known', cardinality(v_sessions), 'ended', v_ended, 'error', v_error);
end;
$$;

-- Any device of the account may revoke any other, itself included. Revoking twice keeps the first date.
create function public.ai_memory_revoke(p_device_id text) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
begin
    perform ai_memory_private.head_of(v_user, p_lock => true);
    update public.ai_memory_devices set revoked_at = coalesce(revoked_at, now())
    where user_id = v_user and device_id = p_device_id;
    if not found then
        perform ai_memory_private.device_of(v_user, p_device_id);
    end if;
    return ai_memory_private.end_sessions(v_user, p_device_id);
end;
$$;

-- As older clients know it: without an answer.
create or replace function public.ai_memory_revoke_device(p_device_id text) returns void
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
begin
    perform public.ai_memory_revoke(p_device_id);
end;
$$;

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_register_device(text, text, text, text, text, text, text, text, text),
    public.ai_memory_revoke(text),
    public.ai_memory_session_is_open()
from public, anon, authenticated, service_role;
grant execute on function
    public.ai_memory_register_device(text, text, text, text, text, text, text, text, text),
    public.ai_memory_revoke(text),
    public.ai_memory_session_is_open()
to authenticated;
