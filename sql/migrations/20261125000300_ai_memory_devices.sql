-- Devices: register, hold, rename, revoke, list.
--
-- One replica speaks for a device
--   * A replica is one local database; ai_memory_devices.replica_id names the one that speaks for the device. Two live
--     replicas of one device would overwrite each other's document for ever, so the second gets `device_conflict` and
--     nothing of its call is applied.
--   * "Live" means seen within the last ten minutes. last_seen_at is written at most once a minute, so an idle poll
--     writes nothing. A silent replica loses the device to the next one that calls: a reinstalled app, or a machine
--     whose data directory was deleted, comes back without help.
--   * A replica that was created after `device_forked` (a clone, a restored backup) cannot wait for its former self to
--     fall silent. It registers with p_takeover = the replica that it replaces. This is a compare-and-swap: two
--     replicas cannot take the device from each other by accident. The old replica's events stay.
--
-- Proof and sessions (reasons: docs/decisions/003-device-proof.md)
--   * PostgreSQL has no Ed25519, so the proof is a secret that the client derives from its device key. The device shows
--     it when it registers; the table keeps its SHA-256. The secret has 256 random bits, so the hash reveals nothing.
--   * A takeover needs the proof. p_proof_next is the SHA-256 of the secret from now on, for a device that takes over
--     with its old key and has already made a new one.
--   * A registration binds the session of its token (the claim session_id) to the device. A device with a proof accepts
--     calls of bound sessions only; another session registers first, with the proof.
--   * The first device that a session registers with a public key owns the session. When that device is revoked, every
--     call and every read of the session is refused, whatever device it names.
--   * Without the proof a device can be taken when its replica is silent: after 10 minutes, because a machine that lost
--     its key must come back without help; after a day if the session belongs to another device.
--   * Tokens without session_id are not bound.
--
-- Keys
--   * A key belongs to one device of an account. A copied data directory under another device id brings the key along;
--     it is refused with `key_in_use` and the client makes its own. Otherwise revoking one of the two would revoke the
--     other's key.
--   * A device may change its key. The list names the newest one; nothing else is trusted.
--   * Keys are compared within an account only. Public keys are public: across accounts, anyone could lock out a key's
--     holder by revoking it in an account of their own.
--
-- Names and lists
--   * A revoked device stays revoked, and its key cannot come back under another id. Registering and revoking hold the
--     head row, so they cannot pass each other.
--   * A name that the user gave (named_at) is not replaced by the host name of the next registration.
--   * The list is a function, not a select: under row-level security a select answers a lost login with no rows, which
--     would read as "all your devices are gone".

-- The user's head row, created at first use. p_lock: hold it until commit, as every call does that numbers events or
-- changes devices.
create function ai_memory_private.head_of(p_user uuid, p_lock boolean) returns public.ai_memory_heads
language plpgsql set search_path = '' as $$
declare
    v_head public.ai_memory_heads;
begin
    if p_lock then
        select * into v_head from public.ai_memory_heads where user_id = p_user for update;
    else
        select * into v_head from public.ai_memory_heads where user_id = p_user;
    end if;
    if v_head.user_id is null then
        begin
            insert into public.ai_memory_heads (user_id) values (p_user) on conflict do nothing;
        exception when foreign_key_violation then
            perform ai_memory_private.refuse(
                '42501', 'account_gone', 'this account no longer exists', 'Log in again; the device keeps what it has.'
            );
        end;
        select * into v_head from public.ai_memory_heads where user_id = p_user for update;
    end if;
    return v_head;
end;
$$;

-- The device's row. Refuses an unknown or revoked device.
create function ai_memory_private.device_of(p_user uuid, p_device_id text) returns public.ai_memory_devices
language plpgsql stable set search_path = '' as $$
declare
    v_device public.ai_memory_devices;
begin
    select * into v_device from public.ai_memory_devices where user_id = p_user and device_id = p_device_id;
    if v_device.user_id is null then
        perform ai_memory_private.refuse(
            '42501', 'device_unregistered', 'this device is not registered', 'Call ai_memory_register_device first.'
        );
    end if;
    if v_device.revoked_at is not null then
        perform ai_memory_private.refuse(
            '42501', 'device_revoked', 'this device was revoked',
            'A revoked device stays revoked; see the list of devices.'
        );
    end if;
    return v_device;
end;
$$;

-- Refuses a malformed key, the key of a revoked device and the key of another device of the account.
create function ai_memory_private.check_key(p_user uuid, p_device_id text, p_public_key text) returns void
language plpgsql stable set search_path = '' as $$
declare
    v_holder public.ai_memory_devices;
begin
    if p_public_key !~ '^ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$' then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'p_public_key must be ed25519: and the base64 of 32 bytes', 'Send the raw key.',
            p_field => 'p_public_key'
        );
    end if;
    select * into v_holder from public.ai_memory_devices
    where user_id = p_user and public_key = p_public_key and device_id <> p_device_id;
    if v_holder.revoked_at is not null then
        perform ai_memory_private.refuse(
            '42501', 'key_revoked', 'this key belongs to a revoked device', 'A revoked device stays revoked.'
        );
    elsif v_holder.user_id is not null then
        perform ai_memory_private.refuse(
            '42501', 'key_in_use', 'this key belongs to another device of the account', 'Make a key of its own.'
        );
    end if;
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

create function ai_memory_private.proof_hash(p_proof text) returns text
language sql immutable set search_path = '' as $$
    select encode(sha256(convert_to(p_proof, 'UTF8')), 'hex');
$$;

-- Null if the replica now speaks for the device, else 'device_conflict'. p_registers: the call would show a proof if it
-- had one, so a missing proof does not mean that the session still has to register.
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
    -- compare-and-swap: of two replicas that take over a silent device at once, one succeeds
    update public.ai_memory_devices set replica_id = p_replica_id, last_seen_at = now()
    where user_id = p_user and device_id = p_device_id
        and (replica_id is not distinct from v_device.replica_id or replica_id = p_replica_id);
    return case when found then null else 'device_conflict' end;
end;
$$;

-- Notes that the caller's session speaks for the device. p_own: the device has shown a public key.
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
            -- an older client that took over a silent device shows no proof; the former holder's would lock it out
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
        -- a device that lost its database but not its key may name this replica in p_takeover
        'proven', case when v_before.proof_sha256 = ai_memory_private.proof_hash(p_proof) then true end
    ));
end;
$$;

-- Sets a name of 1 to 200 characters. Null removes it; the host name of the next registration counts again.
create function public.ai_memory_rename_device(p_device_id text, p_name text) returns void
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(v_user, p_device_id);
    v_name constant text := nullif(trim(p_name), '');
begin
    if char_length(v_name) > 200 then
        perform ai_memory_private.refuse(
            '22023', 'bad_request', 'p_name must have at most 200 characters', 'Send a shorter name.',
            p_field => 'p_name'
        );
    end if;
    update public.ai_memory_devices
    set name = v_name, named_at = case when v_name is null then null else now() end
    where user_id = v_device.user_id and device_id = v_device.device_id;
end;
$$;

-- The caller's devices, revoked ones included, last seen first, at most 500.
create function public.ai_memory_list_devices() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
begin
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
            'device_id', d.device_id, 'name', d.name, 'platform', d.platform, 'app_version', d.app_version,
            'public_key', d.public_key,
            'created_at', ai_memory_private.rfc3339(d.created_at),
            'last_seen_at', ai_memory_private.rfc3339(d.last_seen_at),
            'revoked_at', ai_memory_private.rfc3339(d.revoked_at)
        ) order by d.last_seen_at desc, d.device_id), '[]')
        from (
            select * from public.ai_memory_devices where user_id = v_user
            order by last_seen_at desc, device_id limit 500
        ) as d
    );
end;
$$;

-- --- revoking -----------------------------------------------------------------------------------------------

-- Deletes the device's sessions and their refresh tokens from Auth. `known`: sessions that have registered here;
-- `ended`: how many Auth still had; `error`: the SQLSTATE, if this project does not allow it.
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

-- Any device of the account may revoke any other and itself. A second revocation keeps the first date.
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

-- ai_memory_revoke without an answer, for older clients.
create function public.ai_memory_revoke_device(p_device_id text) returns void
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
begin
    perform public.ai_memory_revoke(p_device_id);
end;
$$;

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;
revoke all on function
    public.ai_memory_register_device(text, text, text, text, text, text, text, text, text),
    public.ai_memory_rename_device(text, text),
    public.ai_memory_list_devices(),
    public.ai_memory_revoke(text),
    public.ai_memory_revoke_device(text)
from public, anon, authenticated, service_role;
