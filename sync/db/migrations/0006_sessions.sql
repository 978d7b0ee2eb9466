-- A session is the events of one id: its end, its meta and its place are asked for by that id.

create index events_by_session on events (session_id, position);
