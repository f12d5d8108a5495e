"""Where the packaged program begins."""

from __future__ import annotations

import multiprocessing

from gui.__main__ import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    raise SystemExit(main())
