-- Devices: registering, holding, renaming, revoking; and the rows of ai_memory that the original app writes itself.
--
-- Decided here, and why:
--   * A device is spoken for by one replica (one local database) at a time: its id stands in ai_memory_devices.
--     Two live replicas of one device would overwrite each other's document in ai_memory for ever, so the second is
--     told `device_conflict` and nothing of it is applied.
--   * "Live" means seen within the last ten minutes. last_seen_at is refreshed at most once a minute, so that an idle
--     poll writes nothing. A replica that fell silent loses the device to the next one that calls: a reinstalled app
--     or a machine whose data directory was deleted is let in without anybody's help.
--   * A replica that was minted anew after `device_forked` (a clone, a restored backup) cannot wait ten minutes for
--     its own former self to fall silent. It registers with p_takeover = the replica id it replaces. That is a
--     compare-and-swap: whoever does not know who holds the device cannot take it by accident, and two replicas
--     cannot take it from each other blindly. The old replica's events stay; if it is still alive somewhere, it is
--     the one that gets `device_conflict` now.
--   * A revoked device stays revoked, and its key cannot come back under another id. Registering and revoking hold the
--     head row, so they cannot pass each other.
--   * A name given by a person (rename) is not undone by the host name sent at the next registration.

-- The head row of a user, made on first use. p_lock: hold it until commit (whoever numbers or changes devices does).
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

-- Null when the replica now speaks for the device, 'device_conflict' when another live one does.
create function ai_memory_private.hold_device(
    p_user uuid, p_device_id text, p_replica_id text, p_takeover text default null
) returns text language plpgsql set search_path = '' as $$
declare
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(p_user, p_device_id);
    v_mine constant boolean := v_device.replica_id is not distinct from p_replica_id;
begin
    perform ai_memory_private.check_id('p_replica_id', p_replica_id);
    if not v_mine
        and v_device.replica_id <> coalesce(p_takeover, '')
        and v_device.last_seen_at > now() - interval '10 minutes'
    then
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

create function public.ai_memory_register_device(
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
    if exists (
        select from public.ai_memory_devices
        where user_id = v_user and public_key = p_public_key and device_id <> p_device_id and revoked_at is not null
    ) then
        perform ai_memory_private.refuse(
            '42501', 'key_revoked', 'this key belongs to a revoked device', 'A revoked device stays revoked.'
        );
    end if;
    insert into public.ai_memory_devices (user_id, device_id, replica_id)
    values (v_user, p_device_id, p_replica_id)
    on conflict (user_id, device_id) do nothing;
    v_error := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id, p_takeover);
    update public.ai_memory_devices set
        name = coalesce(name, p_name), -- a name given by a person stays
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

create function public.ai_memory_rename_device(p_device_id text, p_name text) returns void
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_device constant public.ai_memory_devices := ai_memory_private.device_of(v_user, p_device_id);
begin
    update public.ai_memory_devices set name = nullif(trim(p_name), '')
    where user_id = v_device.user_id and device_id = v_device.device_id;
end;
$$;

-- Any device of the account may revoke any other, itself included. Revoking twice keeps the first date.
create function public.ai_memory_revoke_device(p_device_id text) returns void
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
end;
$$;

-- Rows of ai_memory keep their identity, and a write that did not come from ai_memory_sync is marked as foreign
-- (replica_id and through_replica_seq null, the hash computed here), so that the sidecar never writes over text that
-- the original app has put there and nobody has read yet. That app does not register devices: its first row does.
create function ai_memory_private.tend_document() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    v_foreign boolean;
begin
    if tg_op = 'INSERT' then
        insert into public.ai_memory_devices (user_id, device_id) values (new.user_id, new.device_id)
        on conflict (user_id, device_id) do nothing;
        v_foreign := new.through_replica_seq is null;
    else
        -- An upsert through PostgREST sets every column of its body, the key included, so device_id has an update
        -- grant; it may be set to what it is, never to something else.
        if (new.id, new.user_id, new.device_id) is distinct from (old.id, old.user_id, old.device_id) then
            perform ai_memory_private.refuse(
                '42501', 'identity_fixed', 'id, owner and device of a document cannot change', 'Insert a new row.'
            );
        end if;
        v_foreign := new.content <> old.content
            and new.replica_id is not distinct from old.replica_id
            and new.through_replica_seq is not distinct from old.through_replica_seq;
    end if;
    if v_foreign then
        new.replica_id := null;
        new.through_replica_seq := null;
        new.content_sha256 := encode(sha256(convert_to(new.content, 'UTF8')), 'hex');
    end if;
    return new;
end;
$$;

create trigger ai_memory_tend_document before insert or update on public.ai_memory
for each row execute function ai_memory_private.tend_document();
