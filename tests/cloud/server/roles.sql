-- What a hosted project holds before anyone has typed a line: its roles, their timeouts, and the classic default
-- privileges, which hand every new object of `public` to everybody. Written after the scripts that Supabase publishes
-- with its Postgres image (supabase/postgres); run once, as the superuser, into the prepared data directory.

-- The developer's role. On a hosted project it owns `public`'s tables and is not a superuser; neither is it here.
do $$
begin
  if not exists (select from pg_roles where rolname = 'postgres') then
    create role postgres;
  end if;
end
$$;
alter role postgres nosuperuser createdb createrole login replication bypassrls;
alter role postgres set search_path = "$user", public, extensions;
alter database postgres owner to postgres;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres;

-- Who a request may be. The server signs in as `authenticator`, which can do nothing until it becomes one of them.
create role anon          nologin;
create role authenticated nologin;
create role service_role  nologin bypassrls;
create role authenticator login noinherit;
grant anon, authenticated, service_role to authenticator;
grant anon, authenticated, service_role to postgres with admin option;

alter role anon          set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';

-- The trap that careful migrations revoke their way out of: every new table, function and sequence is everybody's.
grant usage on schema public to postgres, anon, authenticated, service_role;
grant all on schema public to postgres;
alter default privileges for role postgres in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema public
  grant all on sequences to postgres, anon, authenticated, service_role;

-- pgcrypto and uuid-ossp live here on a hosted project. A packaged PostgreSQL may not carry them.
create schema extensions;
grant usage on schema extensions to postgres, anon, authenticated, service_role;
grant all on schema extensions to postgres;
do $$
declare
  wanted text;
begin
  foreach wanted in array array['pgcrypto', 'uuid-ossp'] loop
    if exists (select from pg_available_extensions where name = wanted) then
      execute format('create extension if not exists %I with schema extensions', wanted);
    end if;
  end loop;
end
$$;

-- Where `supabase db push` writes down what it has applied.
create schema supabase_migrations authorization postgres;
create table supabase_migrations.schema_migrations (version text primary key, statements text[], name text);
alter table supabase_migrations.schema_migrations owner to postgres;

-- As on a hosted project, a change of the schema tells the API to look again.
create function extensions.pgrst_ddl_watch() returns event_trigger language plpgsql as $$
begin
  if exists (select from pg_event_trigger_ddl_commands() where schema_name is distinct from 'pg_temp') then
    notify pgrst, 'reload schema';
  end if;
end
$$;
create function extensions.pgrst_drop_watch() returns event_trigger language plpgsql as $$
begin
  if exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
    notify pgrst, 'reload schema';
  end if;
end
$$;
create event trigger pgrst_ddl_watch on ddl_command_end execute function extensions.pgrst_ddl_watch();
create event trigger pgrst_drop_watch on sql_drop execute function extensions.pgrst_drop_watch();
