"""Encryption at rest: how a database file is opened, and where its key is.

    access   the driver by which one database file is opened, and its key where it is encrypted
    key      32 random bytes and a salt, made once for each profile, in the keychain of the operating system or a file
    mark     the file beside a database that says it is encrypted, so that it is never taken for a damaged one

Nothing of this imports SQLAlchemy: the first answer of a starting sidecar and `doctor` open databases through it too.
The driver, SQLCipher, is an extra, and imported only where the setting or a mark asks for it.
"""
