-- A document may change without a new event of its replica's own: one that is shared between devices changes with every
-- event of the others, and what is forgotten goes without any. Until now such a text was kept out as "not newer", so a
-- row could hold forgotten words until its device said something again.
--
-- Decided here, and why:
--   * Under the same through_replica_seq a text is written over the one that its sender names (base_sha256), and over no
--     other: requests come late and twice, and of two texts under one number only the sender knows which is newer.
--   * Whoever does not name it, or another one, hears 'stale': read the row, name what stands there, send again. An older
--     client takes that for 'kept', which it was.
--   * What marks a write as foreign is the content that changes without its hash. It was the same replica under the same
--     number, which is now ours as well; the hash is set by ai_memory_sync alone (no column grant).

create or replace function ai_memory_private.tend_document() returns trigger
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
        v_foreign := new.content <> old.content and new.content_sha256 is not distinct from old.content_sha256;
    end if;
    if v_foreign then
        new.replica_id := null;
        new.through_replica_seq := null;
        new.content_sha256 := encode(sha256(convert_to(new.content, 'UTF8')), 'hex');
    end if;
    return new;
end;
$$;

-- 'written', 'kept' (the row is as new), 'stale' (as new by its number, with another text that was not named) or
-- 'foreign' (unseen text of somebody else). Without a document: 'foreign' or null.
create or replace function ai_memory_private.write_document(
    p_user uuid, p_device_id text, p_replica_id text, p_snapshot jsonb
) returns text language plpgsql set search_path = '' as $$
declare
    v_content constant text := p_snapshot ->> 'content';
    v_hash constant text := encode(sha256(convert_to(v_content, 'UTF8')), 'hex');
    v_base constant text := p_snapshot ->> 'base_sha256';
    v_through constant text := p_snapshot ->> 'through_replica_seq';
    v_row public.ai_memory;
begin
    if p_snapshot is null then
        return (
            select 'foreign' from public.ai_memory
            where user_id = p_user and device_id = p_device_id and replica_id is null
        );
    end if;
    if jsonb_typeof(p_snapshot -> 'content') is distinct from 'string' or octet_length(v_content) > 1048576
        or v_hash is distinct from p_snapshot ->> 'content_sha256' or coalesce(v_through, '') !~ '^\d{1,18}$'
    then
        perform ai_memory_private.refuse(
            '22023', 'bad_snapshot', 'document refused: content (at most 1 MiB), its sha256 or through_replica_seq',
            'Send the events without the document.', p_field => 'p_snapshot'
        );
    end if;
    insert into public.ai_memory as doc
        (user_id, device_id, content, content_sha256, replica_id, through_replica_seq, updated_at)
    values (
        p_user, p_device_id, v_content, v_hash, p_replica_id, v_through::bigint,
        least((p_snapshot ->> 'updated_at')::timestamptz, now()) -- a device's clock may lag, never lead; null is now
    )
    on conflict (user_id, device_id) do update set
        content = excluded.content, content_sha256 = excluded.content_sha256, replica_id = excluded.replica_id,
        through_replica_seq = excluded.through_replica_seq, updated_at = excluded.updated_at
    where case
        when doc.replica_id is null then doc.content_sha256 in (v_hash, v_base)
        when doc.replica_id <> excluded.replica_id then true
        when doc.through_replica_seq = excluded.through_replica_seq then doc.content_sha256 = v_base
        else doc.through_replica_seq < excluded.through_replica_seq
    end;
    if found then
        return 'written';
    end if;
    select * into v_row from public.ai_memory where user_id = p_user and device_id = p_device_id;
    return case
        when v_row.replica_id is null then 'foreign'
        when v_row.through_replica_seq = v_through::bigint and v_row.content_sha256 <> v_hash then 'stale'
        else 'kept'
    end;
end;
$$;
