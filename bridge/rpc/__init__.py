"""JSON-RPC 2.0 between two processes. Glossary of this package:

    chunk     bytes as a pipe happens to deliver them; its borders mean nothing.
    frame     the bytes of one JSON text, without newline or header.
    call      one request or notification, checked, not yet looked up.
    wire      where bytes come from and go to; `stdio` is the real one, `direct` its twin in memory.

The way of a byte: wire -> frames -> messages -> dispatch -> methods table, and the same way back.
"""
