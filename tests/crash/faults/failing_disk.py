"""A disk that fails with EIO, by means of the kernel: no compiler, root or mock.

A seccomp filter makes `fsync` and `fdatasync` of this process fail with EIO, for the program, for SQLite and for
whatever else runs in it, until it ends. For temporary errors, `sqlite_cannot_write` replaces a call
 that SQLite's file system makes (`xSetSystemCall`, https://www.sqlite.org/c3ref/vfs.html),
which is what SQLite's own tests do.
"""

import _sqlite3
import ctypes
import errno
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_SET_MODE_FILTER: Final = 1
SECCOMP_FILTER_FLAG_TSYNC: Final = 1  # for all threads
RET_ALLOW: Final = 0x7FFF0000
RET_ERRNO: Final = 0x00050000
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06

# The numbers of seccomp, fsync and fdatasync: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
NUMBERS: Final = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def fail_every_flush() -> None:
    """Make every flush of this process fail from now on. OSError if the kernel refuses the filter."""
    seccomp, fsync, fdatasync = NUMBERS[platform.machine()]
    steps = (
        (LOAD, 0, 0, 0),  # the number of the call
        (JUMP_IF_EQUAL, 1, 0, fsync),
        (JUMP_IF_EQUAL, 0, 1, fdatasync),
        (RETURN, 0, 0, RET_ERRNO | errno.EIO),
        (RETURN, 0, 0, RET_ALLOW),
    )
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = _Program(len(steps), code)
    libc = ctypes.CDLL(None, use_errno=True)
    for answer in (
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, ctypes.byref(program)),
    ):
        if answer != 0:
            raise OSError(ctypes.get_errno(), "the kernel does not let us break the disk")


_SET: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_GET: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_WRITE: Final = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("calls", ctypes.c_void_p * 13),  # xOpen to xCurrentTimeInt64
        ("set_system_call", _SET),
        ("get_system_call", _GET),
    )


@contextmanager
def sqlite_cannot_write(number: int) -> Iterator[None]:
    """Inside the block, every write that SQLite makes in this process fails with this errno."""

    def refuse(_file: int, _data: int, _count: int, _at: int) -> int:
        ctypes.set_errno(number)
        return -1

    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None)
    refusing = _WRITE(refuse)
    used = [name for name in (b"pwrite64", b"pwrite", b"write") if vfs.contents.get_system_call(vfs, name)]
    _set(vfs, used[0], ctypes.cast(refusing, ctypes.c_void_p))
    try:
        yield
    finally:
        _set(vfs, used[0], None)


def _set(vfs: Any, name: bytes, call: ctypes.c_void_p | None) -> None:
    """Set a system call; None restores the original."""
    if vfs.contents.set_system_call(vfs, name, call) != 0:
        raise OSError(errno.ENOTSUP, f"this SQLite does not let {name.decode()} be replaced")
