-- After a push that raised a user's head: one broadcast on the user's private topic `ai_memory:<user_id>`.
--
--   * The broadcast carries the head's number and nothing else. A device that receives it calls ai_memory_sync, which
--     decides what the device may have. The next poll finds a lost broadcast, so nothing here needs to be reliable.
--   * It must never cost a push. A project without Realtime, or with another one, does not send; any error of send()
--     becomes a warning. The head row is locked meanwhile, so waiting is bounded: 100 ms for a lock (a partition of
--     realtime.messages that is being made). Otherwise it is one insert, below 0.1 ms.
--   * The trigger looks for realtime.send at each push and a function makes the policies, so Realtime may be added
--     after this migration: then run `select ai_memory_private.allow_realtime();` in the SQL editor. It may be
--     repeated.
--   * Policies on realtime.messages are shared with everything else that the project broadcasts. Ours let a user
--     receive their own topic. The restrictive policies do not touch other topics and keep ours closed even if a
--     permissive policy says `using (true)`: no other user may listen, and no user may send. (On a hosted project
--     `postgres` may make policies on that table and nothing else, not even comments.)

create function ai_memory_private.poke() returns trigger
language plpgsql security definer set search_path = '' set lock_timeout = '100ms' as $$
begin
    if to_regprocedure('realtime.send(jsonb, text, text, boolean)') is not null then
        perform realtime.send(jsonb_build_object('head', new.seq), 'head', 'ai_memory:' || new.user_id, true);
    end if;
    return null;
exception when others then
    raise warning 'ai_memory: nobody was poked: % (%)', sqlerrm, sqlstate;
    return null;
end;
$$;

create trigger ai_memory_heads_poke after update of seq on public.ai_memory_heads
for each row when (new.seq > old.seq) execute function ai_memory_private.poke();

-- Creates the policies, or replaces them. Returns what a device may expect.
create function ai_memory_private.allow_realtime() returns text
language plpgsql set search_path = '' as $$
begin
    if to_regclass('realtime.messages') is null or to_regprocedure('realtime.topic()') is null then
        return 'this project has no Realtime; devices poll';
    end if;
    drop policy if exists ai_memory_receive on realtime.messages;
    drop policy if exists ai_memory_only_own on realtime.messages;
    drop policy if exists ai_memory_nobody_sends on realtime.messages;
    drop policy if exists ai_memory_not_anon on realtime.messages;
    create policy ai_memory_receive on realtime.messages for select to authenticated using (
        extension = 'broadcast' and (select realtime.topic()) = 'ai_memory:' || (select auth.uid())
    );
    create policy ai_memory_only_own on realtime.messages as restrictive for select to authenticated using (
        coalesce((select realtime.topic()), '') not like 'ai\_memory:%'
        or (
            (select realtime.topic()) = 'ai_memory:' || (select auth.uid())
            and coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false
        )
    );
    create policy ai_memory_nobody_sends on realtime.messages as restrictive for insert to authenticated
    with check (coalesce((select realtime.topic()), '') not like 'ai\_memory:%');
    create policy ai_memory_not_anon on realtime.messages as restrictive for all to anon
    using (coalesce((select realtime.topic()), '') not like 'ai\_memory:%');
    return 'devices hear of changes at once';
exception when insufficient_privilege then
    raise warning 'ai_memory: this role may not make policies on realtime.messages: %', sqlerrm;
    return 'the policies could not be made; devices poll';
end;
$$;

revoke all on function ai_memory_private.poke(), ai_memory_private.allow_realtime()
from public, anon, authenticated, service_role;

select ai_memory_private.allow_realtime();
