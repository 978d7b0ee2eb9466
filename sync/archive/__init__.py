"""Export a profile into one file, and import such files and those of other programs.

An archive is a gzip'd tar of parts with a manifest of their hashes at its end, encrypted if the user gives a
passphrase. A part holds at most a thousand events, or some versions of the document.
"""
