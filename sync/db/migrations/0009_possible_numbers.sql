-- An earlier repair took a fingerprint for a position and noted it as the highest position ever given. Nothing was
-- recorded beyond it yet: the numbers go on behind the highest position that there is.
update sqlite_sequence
set seq = max(coalesce((select max(position) from events), 0),
              coalesce((select max(position) from watermarks where position < 1099511627776), 0))
where name = 'events' and seq > 1099511627776
  and not exists (select 1 from events where position > 1099511627776);
update sqlite_sequence
set seq = max(coalesce((select max(version) from written), 0),
              coalesce((select position from watermarks where name = 'document.on_disk' and position < 1099511627776), 0))
where name = 'written' and seq > 1099511627776
  and not exists (select 1 from written where version > 1099511627776);
