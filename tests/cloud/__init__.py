"""A local Supabase for the demo and the tests. README.md says how it differs from a hosted project.

    python -m tests.cloud                    for programs in any language: one JSON line when ready
    LocalCloud.start()                       for a test that takes the API away and brings it back
    local_cloud, new_user                    fixtures, for every other test
    FaultProxy(host, port)                   a TCP proxy with network faults

From the outside in: a *front* answers HTTP and bridges what is missing; behind it *lite* (Node, `server/main.mjs`)
speaks PostgREST and Auth; behind that a throwaway *database*, PostgreSQL or PGlite, started from a *template*.
"""
