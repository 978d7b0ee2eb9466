-- What a hosted project says about the Auth schema, once the server has made its tables. Run once, as the superuser,
-- into the prepared data directory.

create role supabase_auth_admin noinherit login;
grant all on schema auth to supabase_auth_admin;

-- Anyone may look up a function here; nobody but Auth and the developer may read a table.
grant usage on schema auth to anon, authenticated, service_role, postgres;
grant all on all tables in schema auth to postgres, supabase_auth_admin;
do $$
declare
  found regclass;
begin
  for found in select oid from pg_class where relnamespace = 'auth'::regnamespace and relkind = 'r' loop
    execute format('alter table %s owner to supabase_auth_admin', found);
    execute format('alter table %s enable row level security', found);
  end loop;
end
$$;

-- The server's own versions read `request.jwt.claim.*` alone; hosted ones also read the whole claims, which is what
-- PostgREST sets today and what tests set that speak to the database themselves.
create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid
$$;
create or replace function auth.role() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  )
$$;
create or replace function auth.email() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.email', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
  )
$$;
create or replace function auth.jwt() returns jsonb language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb
$$;
alter function auth.uid() owner to supabase_auth_admin;
alter function auth.role() owner to supabase_auth_admin;
alter function auth.email() owner to supabase_auth_admin;
alter function auth.jwt() owner to supabase_auth_admin;
