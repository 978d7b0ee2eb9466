-- Keys of devices: what one looks like, whose it is, and how an account's list of devices is read.
--
-- Decided here, and why:
--   * A key is `ed25519:` and the base64 of its 32 raw bytes, in the one spelling that base64 has for them, because
--     keys are compared as text. Clients before this migration sent none, so no row can break the rule.
--   * A key belongs to one device of an account. A copied data directory under another device id brings the key along;
--     it is refused with `key_in_use`, and the client makes a key of its own. Otherwise revoking one of the two would
--     revoke the other's key, and a peer that pins keys could not tell them apart.
--   * A device may change its key (a copy that goes on as a new replica does). The list names the newest one only;
--     nothing else is trusted, so older ones need no list.
--   * Keys are compared within an account, never across accounts. A revoked key says nothing about another account:
--     public keys are public, so whoever knows one could otherwise lock its holder out by revoking it in an account of
--     his own, and a refusal would tell him who is here. The sidecar has a key for each account anyway.
--   * `named_at` tells a name that a person gave from a host name. The first stays, the second follows the device.
--   * The list is a function and not a select: a select under row-level security answers a lost login with no rows,
--     and an empty list would read as "all your devices are gone".

alter table public.ai_memory_devices
    add column named_at timestamptz,
    add constraint ai_memory_devices_public_key check (
        public_key ~ '^ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$'
    );

create unique index ai_memory_devices_keys on public.ai_memory_devices (user_id, public_key);

-- Refuses a key that is none, that a revoked device of the account has, or that another device has.
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

create or replace function public.ai_memory_register_device(
    p_device_id text,
    p_replica_id text,
    p_name text default null,
    p_platform text default null,
    p_app_version text default null,
    p_public_key text default null,
    p_takeover text default null
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_head constant public.ai_memory_heads := ai_memory_private.head_of(v_user, p_lock => true);
    v_error text;
    v_device public.ai_memory_devices;
begin
    perform ai_memory_private.check_id('p_device_id', p_device_id);
    perform ai_memory_private.check_id('p_replica_id', p_replica_id);
    perform ai_memory_private.check_key(v_user, p_device_id, p_public_key);
    insert into public.ai_memory_devices (user_id, device_id, replica_id)
    values (v_user, p_device_id, p_replica_id)
    on conflict (user_id, device_id) do nothing;
    v_error := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id, p_takeover);
    update public.ai_memory_devices set
        name = case when named_at is null then coalesce(p_name, name) else name end,
        platform = coalesce(p_platform, platform),
        app_version = coalesce(p_app_version, app_version),
        public_key = coalesce(p_public_key, public_key)
    where user_id = v_user and device_id = p_device_id and v_error is null;
    select * into v_device from public.ai_memory_devices where user_id = v_user and device_id = p_device_id;
    return jsonb_strip_nulls(jsonb_build_object(
        'device_id', v_device.device_id, 'replica_id', v_device.replica_id, 'name', v_device.name,
        'epoch', v_head.epoch, 'head', v_head.seq, 'floor', v_head.floor_seq,
        'schema_version', public.ai_memory_schema_version(),
        'server_time', ai_memory_private.rfc3339(clock_timestamp()), 'error', v_error
    ));
end;
$$;

-- A name of 1 to 200 characters; without one the host name of the next registration counts again.
create or replace function public.ai_memory_rename_device(p_device_id text, p_name text) returns void
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

-- The caller's devices, revoked ones included, the last seen first; at most 500.
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

revoke all on function ai_memory_private.check_key(uuid, text, text) from public, anon, authenticated, service_role;
revoke all on function public.ai_memory_list_devices() from public, anon, authenticated, service_role;
grant execute on function public.ai_memory_list_devices() to authenticated;
