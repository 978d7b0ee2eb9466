-- What was said, where `redaction.enabled` is false: until the document of this device has it. Raw, never replicated.
create table captured (
  event_id text not null primary key,
  question text not null,
  answer   text not null
) without rowid;
