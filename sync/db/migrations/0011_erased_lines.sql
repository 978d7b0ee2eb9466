-- Keyed hashes of the lines that an erasure took out of the versions `first` to `last` of the document: a buffer of such
-- a version, saved again, does not add them again. The key never leaves the device.
create table erased_lines (
  hash     text    not null,
  entry_id text    not null,
  first    integer not null,
  last     integer not null,
  primary key (hash, entry_id, first)
) without rowid;

create table erasure_key (
  one integer not null primary key check (one = 1),
  key text    not null
);
