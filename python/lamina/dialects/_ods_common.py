"""What the generated op classes import, taken from the MLIR bindings."""

from mlir.dialects._ods_common import *  # noqa: F403
from mlir.dialects._ods_common import _cext  # noqa: F401
