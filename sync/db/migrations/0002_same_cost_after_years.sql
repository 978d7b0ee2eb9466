-- What every answer asks about the whole log is kept or found, never counted through: it must cost the same after years.

-- How many deliveries are in which state; triggers keep it, so that no writer can forget to.
create table delivery_counts (
  destination text    not null,
  state       text    not null,
  count       integer not null,
  primary key (destination, state)
) without rowid;

insert into delivery_counts select destination, state, count(*) from deliveries group by destination, state;

-- No upsert: an `insert or ignore` that fires a trigger takes its own way with conflicts into it.
create trigger deliveries_added after insert on deliveries begin
  insert into delivery_counts select new.destination, new.state, 0
    where not exists (select 1 from delivery_counts where destination = new.destination and state = new.state);
  update delivery_counts set count = count + 1 where destination = new.destination and state = new.state;
end;

create trigger deliveries_moved after update of destination, state on deliveries begin
  insert into delivery_counts select new.destination, new.state, 0
    where not exists (select 1 from delivery_counts where destination = new.destination and state = new.state);
  update delivery_counts set count = count - 1 where destination = old.destination and state = old.state;
  update delivery_counts set count = count + 1 where destination = new.destination and state = new.state;
end;

create trigger deliveries_removed after delete on deliveries begin
  update delivery_counts set count = count - 1 where destination = old.destination and state = old.state;
end;

-- What a device said of one type: its newest, for the digest of the others, and what its document does not have yet. A
-- program may append a million events of another type between two conversations.
create index events_newest on events (device_id, type, hlc);
create index events_of_device on events (device_id, type, position);
drop index events_by_device;

-- Whether a remote log may lack events that it acknowledged once: only then are all of them looked through.
alter table cursors add column may_lack integer not null default 1;
