"""A local Supabase for the demo and the tests: what it is and where it differs from a hosted project is in README.md.

    python -m tests.cloud                    for programs in any language: one JSON line when ready
    LocalCloud.start()                       for a test that takes the API away and brings it back
    local_cloud, new_user                    fixtures, for every other test
    FaultProxy(host, port)                   anything TCP, with the network of a bad day between

From the outside in: a *front* answers HTTP and bridges what is missing; behind it *lite* (Node, `server/main.mjs`)
speaks PostgREST and Auth; behind that a throwaway *database*, PostgreSQL or PGlite, started from a *template*.
"""
