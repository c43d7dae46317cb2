"""Console scripts that are native programs of the package."""

import os
import sys
from pathlib import Path


def lamina_opt() -> None:
    """Becomes lamina-opt, with the arguments of this process.

    Raises:
        SystemExit: the program was not built.
    """
    program = Path(__file__).parent / "_lib" / "lamina-opt"
    if not program.exists():
        sys.exit(f"error: {program} does not exist; build it with scripts/setup.sh")
    os.execv(program, [str(program), *sys.argv[1:]])
