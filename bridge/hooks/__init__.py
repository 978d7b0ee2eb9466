"""Hooks of coding agents: what the agent's program reports, what is kept of it, and what the agent gets.

`hosts` has one module a program (its JSON in, its JSON out, its settings file); `decision` is the same for all of them.
"""
