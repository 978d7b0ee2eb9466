-- The log is the truth; deliveries say what still has to go where; everything else can be rebuilt from the two.

create table events (
  position       integer primary key autoincrement,
  event_id       text    not null unique,
  schema_version integer not null,
  project_id     text    not null,
  project_path   text,
  session_id     text    not null,
  ts             text    not null,
  ts_ms          integer not null,
  type           text    not null,
  payload        text    not null,
  device_id      text    not null,
  replica_id     text    not null,
  replica_seq    integer not null,
  hlc            text    not null,
  origin         text    not null,
  reach          text    not null check (reach in ('local', 'cloud')),
  local_date     text    not null,
  utc_offset     integer not null,
  extra          text    not null default '{}',
  server_seq     integer,
  server_ts      text,
  unique (replica_id, replica_seq)
);
create index events_by_project on events (project_id, position);
create index events_by_type on events (type, position);
create index events_by_time on events (ts_ms, position);
create index events_by_number on events (server_seq) where server_seq is not null;
create index events_by_device on events (device_id, position);

create table deliveries (
  destination text    not null,
  position    integer not null references events (position),
  state       text    not null check (state in ('pending', 'acked', 'quarantined', 'dropped')),
  primary key (destination, position)
) without rowid;
create index deliveries_by_state on deliveries (destination, state, position);

create table quarantine (
  destination text    not null,
  position    integer not null references events (position),
  code        text    not null,
  message     text    not null,
  noticed_at  text    not null,
  primary key (destination, position)
) without rowid;

-- One row: this database as a replica of the log.
create table replica (
  one        integer primary key check (one = 1),
  replica_id text    not null,
  next_seq   integer not null,
  hlc        text
);

-- How far each follower of the log has come.
create table watermarks (
  name       text    primary key,
  position   integer not null,
  updated_at text    not null
) without rowid;

-- How far we have read each remote log.
create table cursors (
  destination text    primary key,
  epoch       text,
  seq         integer not null,
  event_id    text,
  head        integer not null,
  synced_at   text
) without rowid;

-- One row at most: whose memory this profile is.
create table accounts (
  one        integer primary key check (one = 1),
  user_id    text    not null,
  label      text    not null,
  claimed_at text    not null
);

-- Every version of the document that we wrote or saw, with the entry ids of its lines in order. Raw, never replicated.
create table written (
  version    integer primary key autoincrement,
  surface    text    not null,
  label      text,
  sha256     text    not null,
  bytes      blob    not null,
  entry_ids  text    not null,
  cause      text    not null,
  created_at text    not null
);
create index written_by_surface on written (surface, version);
