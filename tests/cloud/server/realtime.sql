-- What a hosted project's Realtime keeps in the database, as far as broadcasts need it. Written after the migrations of
-- supabase/realtime; run once, as the superuser, into the prepared data directory.

create role supabase_realtime_admin noinherit nologin noreplication;
create schema realtime;
grant usage on schema realtime to postgres, anon, authenticated, service_role;
grant all on schema realtime to supabase_realtime_admin with grant option;

-- Hosted ones are partitioned by day; a row is read from the log of the database and never again.
create table realtime.messages (
  topic text not null,
  extension text not null,
  payload jsonb,
  event text,
  private boolean default false,
  updated_at timestamp not null default now(),
  inserted_at timestamp not null default now(),
  id uuid not null default gen_random_uuid(),
  primary key (id, inserted_at)
);
alter table realtime.messages owner to supabase_realtime_admin;
alter table realtime.messages enable row level security;
grant all on realtime.messages to postgres;
grant select, insert, update on realtime.messages to anon, authenticated, service_role;

create function realtime.topic() returns text language sql stable as $$
  select nullif(current_setting('realtime.topic', true), '')::text
$$;
create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql as $$
begin
  perform set_config('realtime.topic', topic, true);
  insert into realtime.messages (payload, event, topic, private, extension)
  values (payload, event, topic, private, 'broadcast');
exception when others then
  raise warning 'WarnSendingBroadcastMessage: %', sqlerrm;
end
$$;
alter function realtime.topic() owner to supabase_realtime_admin;
alter function realtime.send(jsonb, text, text, boolean) owner to supabase_realtime_admin;

-- A hosted project's supautils lets `postgres` make policies on this table, which it does not own, and nothing more.
-- Membership gives the owner's rights, and the trigger takes back every one but that.
grant supabase_realtime_admin to postgres;
create function realtime.policies_only() returns event_trigger language plpgsql as $$
begin
  if session_user = 'postgres' and exists (
    select from pg_event_trigger_ddl_commands()
    where (schema_name = 'realtime' or object_identity like '% on realtime.%')
      and command_tag not in ('CREATE POLICY', 'ALTER POLICY')
  ) then
    raise insufficient_privilege using message = 'must be owner of what is in schema realtime';
  end if;
end
$$;
create event trigger realtime_policies_only on ddl_command_end execute function realtime.policies_only();

-- Hosted, the server follows the database's log; here a notification says what was committed.
create function realtime.tell() returns trigger language plpgsql security definer as $$
begin
  perform pg_notify('realtime_messages', jsonb_build_object(
    'topic', new.topic, 'event', new.event, 'private', new.private, 'id', new.id, 'payload', new.payload
  )::text);
  return null;
end
$$;
create trigger tell after insert on realtime.messages for each row execute function realtime.tell();
