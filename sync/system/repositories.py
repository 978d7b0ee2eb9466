"""Whether a folder lies in a repository, where a pull looks like an edit of the person. One definition for all."""

import os
from pathlib import Path
from typing import Final

# By what Emacs knows a working copy: its `vc-directory-exclusion-list`, and `projectile-project-root-files-bottom-up`.
MARKERS: Final = (
    *(".git", ".hg", ".svn", ".jj", ".sl", ".bzr", ".fslckout", "_FOSSIL_", "_darcs", ".pijul"),
    *("CVS", "MCVS", "RCS", "SCCS", ".src", "_MTN", "{arch}"),
)


def is_in_repository(folder: Path) -> bool:
    """Whether the folder, or one above it, has the marker of a version control system, be it a folder or a file."""
    real = Path(os.path.realpath(folder))
    places = {*real.parents, real, folder, *folder.parents}
    return any(os.path.lexists(above / marker) for above in places for marker in MARKERS)
