-- Since 2026 a hosted project gives nobody anything by default: what the API may see has to be granted. Tables and
-- sequences lost their default grants for certain; here functions lose theirs as well, so that a migration which
-- works under this grants each thing that it means to, whatever the project's setting.
alter default privileges for role postgres in schema public revoke all on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke all on sequences from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke all on functions from anon, authenticated, service_role;
alter default privileges for role postgres revoke execute on functions from public;
