-- A version is stored as its difference from an earlier one, `base`, that is stored whole. Those of before stay as they
-- are: whole, with a null, and `entries` uncounted.
alter table written add column base integer;
alter table written add column entries integer;
