-- Sets the objects of schema 1 or 2 aside, which were never released and cannot be brought up to date. Run it once, in
-- the SQL editor, before all files of migrations/.
--
-- Nothing is deleted: tables, views and functions move to the schema ai_memory_before, the partitions of the events to
-- ai_memory_private_before. Neither is exposed through the API. Each device notices the new log and sends its own
-- events again; those of devices that are gone are in ai_memory_before.ai_memory_events alone.

do $$
declare
    v_object text;
begin
    if to_regprocedure('public.ai_memory_schema_version()') is null or public.ai_memory_schema_version() >= 3 then
        raise exception 'this project does not have schema 1 or 2; nothing was changed';
    end if;
    create schema ai_memory_before;
    revoke all on schema ai_memory_before from public;
    for v_object in
        select case when relkind = 'v' then 'view ' else 'table ' end || oid::regclass from pg_class
        where relnamespace = 'public'::regnamespace and relname like 'ai\_memory%' and relkind in ('r', 'p', 'v')
        union all
        select 'function ' || oid::regprocedure from pg_proc
        where pronamespace = 'public'::regnamespace and proname like 'ai\_memory%'
    loop
        execute format('alter %s set schema ai_memory_before', v_object);
    end loop;
    alter schema ai_memory_private rename to ai_memory_private_before;
end;
$$;
