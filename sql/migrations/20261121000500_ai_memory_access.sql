-- Who may do what. Everything was taken away where it was created; this file alone gives.
--
-- Decided here:
--   * anon: nothing. authenticated: reads its own rows of all four tables, calls the public functions, and writes
--     content (nothing else) into its own rows of ai_memory, because the original app does. Events, heads and
--     devices change through the functions only, which run as the owner of the tables.
--   * user_id has no insert and no update grant: the default auth.uid() fills it, so an owner is never named in a body.
--     device_id has an update grant for PostgREST's upsert, which sets the conflict key as well (PostgREST issue
--     2446); a trigger keeps it from changing.
--   * service_role reads (it bypasses row-level security): admins query, they do not edit. What admins may change comes
--     as functions of its own. The owner in the SQL editor can do everything, as always.
--   * A signed-in anonymous user has the role authenticated; a restrictive policy on every table shuts him out.
--   * (select auth.uid()) instead of auth.uid(): evaluated once a statement, not once a row.
--   * A later migration that drops and creates a function must revoke and grant again: on a hosted project a new
--     function is executable by everybody.

-- The number of the protocol; a client that needs a higher one says `schema_mismatch` and names the migration.
create function public.ai_memory_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 1; $$;

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

create policy ai_memory_heads_named on public.ai_memory_heads as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_devices_named on public.ai_memory_devices as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_events_named on public.ai_memory_events as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

create policy ai_memory_named on public.ai_memory as restrictive for all to authenticated
using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false);

grant select on table
    public.ai_memory_heads, public.ai_memory_devices, public.ai_memory_events, public.ai_memory
to authenticated, service_role;

grant insert (device_id, content, updated_at), update (device_id, content, updated_at)
on table public.ai_memory to authenticated;

revoke all on all functions in schema ai_memory_private from public, anon, authenticated, service_role;

revoke all on function
    public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb),
    public.ai_memory_register_device(text, text, text, text, text, text, text),
    public.ai_memory_rename_device(text, text),
    public.ai_memory_revoke_device(text),
    public.ai_memory_forget(text, jsonb),
    public.ai_memory_schema_version()
from public, anon, authenticated, service_role;

grant execute on function
    public.ai_memory_sync(text, text, jsonb, bigint, text, text, integer, jsonb),
    public.ai_memory_register_device(text, text, text, text, text, text, text),
    public.ai_memory_rename_device(text, text),
    public.ai_memory_revoke_device(text),
    public.ai_memory_forget(text, jsonb),
    public.ai_memory_schema_version()
to authenticated;
