"""What this device need not hold any longer: archived, then forgotten here. The cloud and other devices keep theirs.

rules     how long, or how much, is kept
held      an event that stays although it is old, and why
archive   a file of `sync.archive`, read back before anything in it is forgotten
"""
