"""The console script. `serve` alone takes the short way: what the command line imports would delay its answer."""

import sys


def main() -> None:
    """`xiaobai-memory …`"""
    if sys.argv[1:] == ["serve"]:
        from bridge.serving import main as serve  # noqa: PLC0415 - only this way needs it

        raise SystemExit(serve({}))
    from bridge.cli.commands import app  # noqa: PLC0415

    app()


if __name__ == "__main__":
    main()
