"""The integrity of the log: its checks, and the job that runs them."""
