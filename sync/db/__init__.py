"""The local database: engine, tables and migrations. SQL that belongs to a room lives in that room's `store.py`."""
