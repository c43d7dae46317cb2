"""The MLIR IR classes, under the name that generated code expects."""

from mlir.ir import *  # noqa: F403
