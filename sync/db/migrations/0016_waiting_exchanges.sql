-- Exchanges that wait for a language model, in redacted words: only if an app offers one or the settings name one, and
-- until it has answered. Never replicated.
create table waiting_exchanges (
  event_id text not null primary key,
  typed    text not null,
  previous text not null,
  tries    integer not null
);
create trigger waiting_exchanges_changed after update of payload on events begin
  delete from waiting_exchanges where event_id = new.event_id;
end;
create trigger waiting_exchanges_deleted after delete on events begin
  delete from waiting_exchanges where event_id = old.event_id;
end;
