-- The document follows what was typed by hand, too, where that comes back from the cloud. What was typed here stands in
-- it already: its mark moves behind it, but not past an exchange that the document still lacks.
insert or replace into watermarks (name, position, updated_at)
select 'document',
       coalesce((select min(position) - 1 from events
                 where type = 'exchange_recorded'
                   and replica_id = (select replica_id from replica)
                   and position > coalesce((select position from watermarks where name = 'document'), 0)),
                (select coalesce(max(position), 0) from events)),
       strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
where exists (select 1 from written where surface = 'file');
