"""One thread for linear algebra: the matrices are small, and on a busy machine threads mostly wait for each other."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
