"""Everything in one file, and back; and what other programs kept, brought in.

archive   a gzip'd tar of parts, with a manifest of their hashes at its end; sealed with a passphrase where asked
part      one member of it: at most a thousand events, or some versions of the document
source    what an import reads: an archive, or another program's file
"""
