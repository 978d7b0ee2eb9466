-- The public keys of the account's devices, and since when this database knows each of them: a large erasure request of
-- another device is carried out without a question only if a key signed it that is known for a day.
create table device_keys (
  public_key    text not null primary key,
  device_id     text not null,
  first_seen_at text not null
) without rowid;
