-- The devices that were paired with this one by code, without a cloud. `discovery_id` is the secret that the marks of the
-- other device's announcements are made of.
create table paired_devices (
  public_key   text not null primary key,
  device_id    text not null unique,
  name         text not null,
  discovery_id text not null,
  paired_at    text not null
) without rowid;
