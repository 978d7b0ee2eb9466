"""Whether a folder lies in a repository, where a pull looks like an edit of the person. One definition for all."""

import os
from pathlib import Path


def is_in_repository(folder: Path) -> bool:
    """Whether the folder, or one above it, has a `.git`: a folder, or the file of a worktree or submodule."""
    real = Path(os.path.realpath(folder))
    return any(os.path.lexists(above / ".git") for above in {*real.parents, real, folder, *folder.parents})
