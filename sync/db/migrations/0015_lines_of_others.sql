-- Lines that the user did not type here are marked where an assistant reads them (sync.document.read.line_authors). Nearly always
-- there is none, and every load asks: an index of these alone answers from nothing, however long the log is.
drop index events_of_programs;
create index events_of_others on events (position)
where type in ('entry_added', 'entry_edited', 'entry_moved') and (origin not in ('user-typed', 'imported')
  or json_extract(extra, '$.door') in ('app_db', 'cloud_document', 'import', 'program', 'project'));
