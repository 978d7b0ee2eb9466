-- One id is one event, and a device's document is written by that device.
--
--   * Two events are the same if event_id, device_id, hlc and type agree, and the payload too where both are whole. A
--     replica and its number are transport: a restored installation sends its events again under new ones.
--   * A known id is acknowledged with the number it has only if it is the same event; else the call is refused with
--     22023 `bad_event`, field `event_id_taken`. Clients of every version find the event by bisection and quarantine it.
--     Before, the id alone was compared: of two devices that used one id, the second was told that its words had
--     arrived, and they had not.
--   * An erased event has no payload to compare. What is sent without a payload (`{}`, erased or expired there) loses
--     nothing.
--   * The row in ai_memory of a device with a public key is written by the session that the device owns, or by
--     ai_memory_sync. The row of a device without a key (the original app's) is written by every session of its account.

-- Whether the log's event is the one that is sent.
create function ai_memory_private.is_same_event(
    p_sent public.ai_memory_events, p_device_id text, p_hlc text, p_type text, p_payload jsonb, p_erased boolean
) returns boolean language plpgsql immutable set search_path = '' as $$
begin
    return (p_sent.device_id, p_sent.hlc, p_sent.type) = (p_device_id, p_hlc, p_type)
        and (p_erased or p_sent.payload in ('{}', p_payload));
end;
$$;

-- The first id of the batch under which the log, its rows or its checkpoints, holds another event; null if there is
-- none. A scalar subquery as in event_rows: one probe of a unique index for each known id.
create function ai_memory_private.taken_id(p_user uuid, p_batch public.ai_memory_events[]) returns text
language plpgsql stable set search_path = '' as $$
declare
    v_known constant public.ai_memory_events[] := array(
        select sent from unnest(p_batch) as sent where sent.seq is not null
    );
begin
    if v_known = '{}' then
        return null;
    end if;
    return (
        with folded as materialized (
            select event from ai_memory_private.folded(p_user, array(
                select ai_memory_private.mark('id/', known.event_id) from unnest(v_known) as known
            )) as event
        )
        select known.event_id
        from unnest(v_known) as known
        where not coalesce(
            (
                select ai_memory_private.is_same_event(
                    known, held.device_id, held.hlc, held.type, held.payload, held.forgotten_at is not null
                )
                from public.ai_memory_events as held
                where held.user_id = p_user and held.event_id = known.event_id
            ),
            (
                select ai_memory_private.is_same_event(
                    known, event ->> 'device_id', event ->> 'hlc', event ->> 'type', event -> 'payload',
                    event ? 'forgotten_at'
                )
                from folded where event ->> 'event_id' = known.event_id
            ),
            false
        )
        limit 1
    );
end;
$$;

-- Numbers and stores the new events. The caller holds the head row. error is null or 'device_forked'.
create or replace function ai_memory_private.push(
    p_user uuid, p_device_id text, p_replica_id text, p_events jsonb, p_head bigint,
    out head bigint, out acked jsonb, out error text
) language plpgsql set search_path = '' as $$
declare
    v_batch constant public.ai_memory_events[] := array(
        select r from ai_memory_private.event_rows(p_user, p_device_id, p_replica_id, p_events) as r
    );
    v_taken constant text := ai_memory_private.taken_id(p_user, v_batch);
begin
    head := p_head;
    acked := '[]';
    if v_taken is not null then
        perform ai_memory_private.refuse(
            '22023', 'bad_event', 'event refused: another event has this id',
            'Set this event aside; the others can be sent without it.', v_taken, 'event_id_taken'
        );
    end if;
    if ai_memory_private.is_forked(p_user, v_batch) then
        error := 'device_forked';
        return;
    end if;
    with batch as (
        select * from unnest(v_batch) with ordinality
    ), stored as (
        insert into public.ai_memory_events
        select
            user_id, p_head + row_number() over (order by ordinality), event_id, replica_id, replica_seq, device_id,
            schema_version, project_id, project_path, session_id, ts, type, payload, hlc, origin,
            local_date, utc_offset, extra, bytes, server_ts, forgotten_at
        from batch
        where seq is null
        returning event_id, seq
    )
    select
        p_head + count(stored.seq),
        jsonb_agg(jsonb_build_array(batch.event_id, coalesce(batch.seq, stored.seq)) order by batch.ordinality)
    into head, acked
    from batch
    left join stored on stored.event_id = batch.event_id;
    update public.ai_memory_heads set seq = head where user_id = p_user and seq < head;
end;
$$;

-- For the policies below, which run as the caller and have no access to ai_memory_private: whether the session may
-- write the device's document. A token without session_id may not, if the device has a key.
create function public.ai_memory_session_may_write(p_device_id text) returns boolean
language plpgsql stable security definer set search_path = '' as $$
begin
    return not exists (
        select from public.ai_memory_devices
        where user_id = auth.uid() and device_id = p_device_id and public_key is not null
    ) or exists (
        select from ai_memory_private.sessions
        where user_id = auth.uid() and session_id = ai_memory_private.session_of_caller()
            and device_id = p_device_id and is_own
    );
end;
$$;

-- Checks of the new row, not filters: what another session writes is an error, not an update of no rows.
create policy ai_memory_own_insert on public.ai_memory
as restrictive for insert to authenticated with check (public.ai_memory_session_may_write(device_id));

create policy ai_memory_own_update on public.ai_memory
as restrictive for update to authenticated with check (public.ai_memory_session_may_write(device_id));

revoke all on function
    ai_memory_private.is_same_event(public.ai_memory_events, text, text, text, jsonb, boolean),
    ai_memory_private.taken_id(uuid, public.ai_memory_events[]),
    public.ai_memory_session_may_write(text)
from public, anon, authenticated, service_role;
grant execute on function public.ai_memory_session_may_write(text) to authenticated;
