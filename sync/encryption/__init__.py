"""Encryption at rest: how a database file is opened, and where its key is.

It does not import SQLAlchemy, because a sidecar's first answer and `doctor` open databases through it. SQLCipher, the
driver, is an extra and is imported only if the setting or a mark needs it. Reasons: docs/decisions/018-encryption.md.
"""
