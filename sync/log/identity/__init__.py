"""The identity of events: which two are the same, and which copy of one a log keeps."""
