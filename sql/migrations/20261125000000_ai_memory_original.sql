-- Make room in a project that holds the original app's table `ai_memory`: rename it with all its rows to
-- `ai_memory_original` and close it. An empty project, and one that has our table already, is left alone.
--
--   * The column replica_id tells the two tables apart; the original never had it.
--   * The original's policies let everybody read and write everything, so all policies and grants go. From here on only
--     the owner of the database sees these rows; ..._legacy.sql gives each to its account, or keeps it.
--   * The table is renamed, not copied: no row can get lost or be too odd to convert.

do $$
declare
    v_table constant regclass := to_regclass('public.ai_memory');
    v_name text;
begin
    if v_table is null or exists (
        select from pg_attribute where attrelid = v_table and attname = 'replica_id' and not attisdropped
    ) then
        return;
    end if;
    alter table public.ai_memory rename to ai_memory_original;
    for v_name in select polname from pg_policy where polrelid = v_table loop
        execute format('drop policy %I on public.ai_memory_original', v_name);
    end loop;
    for v_name in -- the index of a constraint takes its constraint along
        select relname from pg_index join pg_class on pg_class.oid = indexrelid
        where indrelid = v_table and starts_with(relname, 'ai_memory_')
    loop
        execute format(
            'alter index public.%I rename to %I', v_name, 'ai_memory_original' || substr(v_name, length('ai_memory_'))
        );
    end loop;
    alter table public.ai_memory_original enable row level security;
    revoke all on table public.ai_memory_original from public, anon, authenticated, service_role;
end;
$$;
