"""Crash tests: kills at labelled steps, torn logs, damaged databases, failing disks.

Glossary
    step        a named function on the path of data that must not get lost (`crash_steps.py`).
    scenario    actions in a real sidecar, with the steps it must pass and the checks afterwards.
    point       scenario, step, side (before or after) and passage at which the process kills itself.

`make test` takes a sample, `make crash` all of it; RESULTS.md keeps the last full run.
"""
