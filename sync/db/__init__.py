"""The local database: engine, tables and migrations. Each package's own SQL is in its `store.py`."""
