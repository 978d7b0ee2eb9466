-- Exchanges that wait for a language model, if an app offers one or the settings name one. Their words are in the log.
create table waiting_exchanges (
  event_id text    not null primary key,
  tries    integer not null
);
