"""JSON-RPC 2.0 between two processes: transport -> framing -> messages -> dispatcher -> method table, and back.

chunk  bytes as a pipe delivers them; its borders mean nothing.
frame  the bytes of one JSON text, without newline or header.
call   one request or notification, checked and not yet looked up.
"""
