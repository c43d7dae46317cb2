"""Op classes of the prim dialect."""

from ._prim_enum_gen import *  # noqa: F403
from ._prim_ops_gen import *  # noqa: F403
from ._prim_ops_gen import _Dialect  # noqa: F401
