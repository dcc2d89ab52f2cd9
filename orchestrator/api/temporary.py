"""A directory for as long as somebody needs it."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp


class Temporary:
    """A directory that is deleted with this object, or when Python ends; silently, as that is meant."""

    def __init__(self, prefix: str):
        self.path = Path(mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
