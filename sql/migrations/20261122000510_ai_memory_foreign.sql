-- Foreign text in a device's document is told at every call, not only when the device sends a document.
--
-- Decided here: the original app may write while the sidecar has nothing to say, and a device whose own document stands
-- still would never hear of it. The answer costs one look at a unique key. Older clients pass over it.

-- 'written', 'kept' (the row is as new) or 'foreign' (unseen text of somebody else). Without a document: 'foreign' or
-- null.
create or replace function ai_memory_private.write_document(
    p_user uuid, p_device_id text, p_replica_id text, p_snapshot jsonb
) returns text language plpgsql set search_path = '' as $$
declare
    v_content constant text := p_snapshot ->> 'content';
    v_hash constant text := encode(sha256(convert_to(v_content, 'UTF8')), 'hex');
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
        when doc.replica_id is null then doc.content_sha256 in (v_hash, p_snapshot ->> 'base_sha256')
        else doc.replica_id <> excluded.replica_id or doc.through_replica_seq < excluded.through_replica_seq
    end;
    if found then
        return 'written';
    end if;
    select * into v_row from public.ai_memory where user_id = p_user and device_id = p_device_id;
    return case when v_row.replica_id is null then 'foreign' else 'kept' end;
end;
$$;
