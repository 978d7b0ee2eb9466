"""`python -m tests.demo [--once] [--lan]`. Says something before it imports anything slow."""

import sys


def main() -> int:
    """0 if the demo ended and nothing was lost, 130 if Ctrl-C interrupted it."""
    sys.stdout.write("xiaobai-memory: two devices, one cloud, all on this machine\n")
    sys.stdout.flush()
    from tests.demo.scenario import run  # noqa: PLC0415 - after the first line is on the screen

    return run(once="--once" in sys.argv[1:], lan="--lan" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
