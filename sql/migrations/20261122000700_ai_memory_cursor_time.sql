-- Whether the event at a cursor is the one that the client read there, and not the same one sent again.
--
-- Decided here, and why:
--   * After a restore from a backup, under the same epoch, each device sends again what the server has forgotten of its
--     own. Its newest event can get the very number it had, while the numbers below are others now: a device whose
--     cursor stands there would see nothing wrong, miss those for ever, and never send its own again. So a cursor tells
--     the time at which the server took its event, too, which is another one the second time. Found by
--     tests/property/cloud/replication/test_replicator.py.
--   * A client that does not say it is served as before. Below floor_seq the id alone counts: what was folded was held
--     by every device.

drop function public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb);
drop function ai_memory_private.must_reset(public.ai_memory_heads, bigint, text, text);

create function ai_memory_private.must_reset(
    p_head public.ai_memory_heads, p_after bigint, p_after_event text, p_epoch text, p_after_ts text
) returns boolean language plpgsql stable set search_path = '' as $$
declare
    v_lowest constant bigint := ai_memory_private.lowest(p_head);
begin
    return case
        when p_after > 0 and p_epoch is null then true
        when p_epoch <> p_head.epoch then true
        when p_after > p_head.seq or p_after < v_lowest then true
        when p_after = v_lowest then false
        when p_after_event is distinct from ai_memory_private.event_at(p_head, p_after) then true
        when p_after_ts is null or p_after <= p_head.floor_seq then false
        else p_after_ts is distinct from (
            select ai_memory_private.rfc3339(server_ts)
            from public.ai_memory_events where user_id = p_head.user_id and seq = p_after
        )
    end;
end;
$$;

create function public.ai_memory_sync(
    p_device_id text,
    p_replica_id text,
    p_events jsonb default null,
    p_after bigint default 0,
    p_after_event text default null,
    p_epoch text default null,
    p_limit integer default 500,
    p_snapshot jsonb default null,
    p_after_ts text default null
) returns jsonb
language plpgsql security definer set search_path = '' set lock_timeout = '4s' as $$
declare
    v_user constant uuid := ai_memory_private.signed_in_user();
    v_after constant bigint := coalesce(p_after, 0);
    v_limit constant integer := least(greatest(coalesce(p_limit, 500), 0), 1000);
    v_events constant jsonb := coalesce(ai_memory_private.unwrapped(p_events), '[]');
    v_error text := ai_memory_private.hold_device(v_user, p_device_id, p_replica_id);
    v_head public.ai_memory_heads;
    v_reset boolean := false;
    v_acked jsonb := '[]';
    v_pulled jsonb := '[]';
    v_snapshot text;
begin
    perform ai_memory_private.check_events(v_events, p_device_id, p_replica_id);
    v_head := ai_memory_private.head_of(v_user, p_lock => v_error is null and v_events <> '[]');
    if v_error is null then
        v_reset := ai_memory_private.must_reset(v_head, v_after, p_after_event, p_epoch, p_after_ts);
        perform ai_memory_private.note_cursor(v_user, p_device_id, case when v_reset then 0 else v_after end);
        if v_events <> '[]' then
            select pushed.head, pushed.acked, pushed.error into v_head.seq, v_acked, v_error
            from ai_memory_private.push(v_user, p_device_id, p_replica_id, v_events, v_head.seq) as pushed;
        end if;
    end if;
    if v_error is null then
        perform ai_memory_private.blank(v_user, ids) from ai_memory_private.forgotten_in(v_events) as ids
        where ids <> '{}';
        v_snapshot := ai_memory_private.write_document(
            v_user, p_device_id, p_replica_id, ai_memory_private.unwrapped(p_snapshot)
        );
        if not v_reset then
            v_pulled := ai_memory_private.pull(v_head, v_after, v_limit);
        end if;
    end if;
    return jsonb_build_object(
        'epoch', v_head.epoch, 'head', v_head.seq, 'floor', ai_memory_private.lowest(v_head),
        'reset', v_reset and v_error is null, 'events', v_pulled, 'acked', v_acked,
        'server_time', ai_memory_private.rfc3339(clock_timestamp())
    )
        || case when v_snapshot is null then '{}' else jsonb_build_object('snapshot', v_snapshot) end
        || case when v_error is null then '{}' else jsonb_build_object('error', v_error) end;
end;
$$;

revoke all on function
    ai_memory_private.must_reset(public.ai_memory_heads, bigint, text, text, text),
    public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb, text)
from public, anon, authenticated, service_role;

grant execute on function public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb, text) to authenticated;
