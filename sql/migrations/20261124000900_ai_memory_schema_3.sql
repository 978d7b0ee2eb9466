-- The number of the protocol after the migrations of this day; the last of them, as ..._ai_memory_schema_2.sql was.

create or replace function public.ai_memory_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 3; $$;
