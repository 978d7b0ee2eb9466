"""What is left after the end of the world: kills at labelled steps, torn logs, damaged databases, failing disks.

Glossary
    step        a named function of the program on the way of something that must not get lost (`steps.py`).
    scenario    a person's doing in a real sidecar, with the steps it must pass and what must hold afterwards.
    point       scenario, step, before or after it, and at which passage the process kills itself.

`make test` takes a sample, `make crash` all of it; RESULTS.md keeps the last full run.
"""
