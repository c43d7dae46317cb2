"""``python -m lamina_runtime FILE``: prints what a package holds."""

from __future__ import annotations

import argparse
import sys

from .describe import describe
from .errors import PackageError
from .program import read


def main() -> int:
    """Describes packages; the exit code is 1 if one cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m lamina_runtime", description="Prints what a package holds.")
    parser.add_argument("files", metavar="FILE", nargs="+", help="a package: a file or a folder")
    for path in parser.parse_args().files:
        try:
            package = read(path)
        except (PackageError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(describe(package))
    return 0


if __name__ == "__main__":
    sys.exit(main())
