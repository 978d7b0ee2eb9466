-- The number of the protocol after the migrations of this day; the last of them, so that a project that stopped half-way
-- still answers the older number and is told which files to run.

create or replace function public.ai_memory_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 2; $$;
