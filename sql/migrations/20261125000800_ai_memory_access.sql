-- Who may do what; the last file. Every other file takes all rights from what it creates, and grants to service_role
-- only.
--
--   * anon: nothing.
--   * authenticated: reads its own rows of four tables, calls the public functions, and writes content (nothing else)
--     into its own rows of ai_memory, because the original app does. Events, heads and devices change through functions
--     only, which run as the owner of the tables.
--   * user_id has no insert and no update grant: the default auth.uid() fills it, so no body can name an owner.
--     device_id has an update grant because PostgREST's upsert sets the conflict key as well (PostgREST issue 2446); a
--     trigger keeps it from changing.
--   * service_role reads (it bypasses row-level security) and calls the ai_memory_admin_… functions.
--   * A signed-in anonymous user has the role authenticated; a restrictive policy on every table excludes them.
--   * (select auth.uid()) instead of auth.uid(): evaluated once a statement, not once a row.
--   * A later migration that drops and creates a function must revoke and grant again: on a hosted project everybody
--     may execute a new function.

-- The version of the protocol. A client that needs a higher one says `schema_mismatch` and names the files to run.
create function public.ai_memory_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 3; $$;

-- --- a user's own rows --------------------------------------------------------------------------------------

create policy ai_memory_heads_read on public.ai_memory_heads
for select to authenticated using ((select auth.uid()) = user_id);

create policy ai_memory_devices_read on public.ai_memory_devices
for select to authenticated using ((select auth.uid()) = user_id);

create policy ai_memory_events_read on public.ai_memory_events
for select to authenticated using ((select auth.uid()) = user_id);

create policy ai_memory_read on public.ai_memory
for select to authenticated using ((select auth.uid()) = user_id);

create policy ai_memory_insert on public.ai_memory
for insert to authenticated with check ((select auth.uid()) = user_id);

create policy ai_memory_update on public.ai_memory
for update to authenticated using ((select auth.uid()) = user_id) with check ((select auth.uid()) = user_id);

-- --- no writes of a revoked device --------------------------------------------------------------------------

create policy ai_memory_revoked_insert on public.ai_memory
as restrictive for insert to authenticated with check (not exists (
    select from public.ai_memory_devices as d
    where d.user_id = ai_memory.user_id and d.device_id = ai_memory.device_id and d.revoked_at is not null
));

create policy ai_memory_revoked_update on public.ai_memory
as restrictive for update to authenticated using (not exists (
    select from public.ai_memory_devices as d
    where d.user_id = ai_memory.user_id and d.device_id = ai_memory.device_id and d.revoked_at is not null
));

-- --- no anonymous users -------------------------------------------------------------------------------------

create policy ai_memory_heads_named on public.ai_memory_heads as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_devices_named on public.ai_memory_devices as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_events_named on public.ai_memory_events as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_named on public.ai_memory as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

-- --- no session of a revoked device -------------------------------------------------------------------------

create policy ai_memory_heads_session on public.ai_memory_heads as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_devices_session on public.ai_memory_devices as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_events_session on public.ai_memory_events as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

create policy ai_memory_session on public.ai_memory as restrictive for all to authenticated
using ((select public.ai_memory_session_is_open()));

-- --- grants -------------------------------------------------------------------------------------------------

grant select on table
    public.ai_memory_heads, public.ai_memory_devices, public.ai_memory_events, public.ai_memory
to authenticated, service_role;

grant select on table
    public.ai_memory_checkpoints, public.ai_memory_activity, public.ai_memory_limits
to service_role;

grant insert (device_id, content, updated_at), update (device_id, content, updated_at)
on table public.ai_memory to authenticated;

revoke all on function public.ai_memory_schema_version() from public, anon, authenticated, service_role;

grant execute on function
    public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb, text),
    public.ai_memory_forget(text, jsonb),
    public.ai_memory_register_device(text, text, text, text, text, text, text, text, text),
    public.ai_memory_rename_device(text, text),
    public.ai_memory_list_devices(),
    public.ai_memory_revoke(text),
    public.ai_memory_revoke_device(text),
    public.ai_memory_session_is_open(),
    public.ai_memory_report(text, jsonb),
    public.ai_memory_schema_version()
to authenticated;
