"""``python -m toolenvs``: the same as the console script."""

from __future__ import annotations

from toolenvs.cli import main

if __name__ == "__main__":
    main()
