"""The command line without root's right to read and write whatever the modes of a file say."""

import ctypes
import os
import struct
import sys

from bridge.cli.main import main as run_command

CAPABILITY_VERSION = 0x20080522  # capabilities(7), of 64 bits


def main() -> None:
    if os.geteuid() == 0:
        header, none_of_them = struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)
        if ctypes.CDLL(None).capset(header, none_of_them):
            sys.exit("this root cannot give up its rights: run the tests as another user")
    run_command()
