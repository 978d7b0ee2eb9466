"""Lessons: errors with their cures, and patterns. They never leave this device.

The log is the store; tables in the database answer an exact match, and a JSON tree shows the lessons to other programs.
"""
