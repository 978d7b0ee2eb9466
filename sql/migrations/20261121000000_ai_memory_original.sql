-- Makes room in a project that holds the original app's table `ai_memory`: with every row it has, that table becomes
-- `ai_memory_original`, closed. In an empty project, and in one that has our table already, nothing happens.
--
-- Decided here:
--   * Ours is told by the column replica_id, which the original never had.
--   * The original's policies let everybody read and write everything. None of them survives, nor does a grant: from here
--     on only the owner of the database sees these rows, and ..._legacy.sql gives each to its account, or keeps it.
--   * Nothing is converted here. The table is renamed, not copied, so no row can be lost or be too odd to follow.

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
    for v_name in -- the indexes of constraints take their constraints along
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
