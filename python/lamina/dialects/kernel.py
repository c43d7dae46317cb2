"""Op classes of the kernel dialect."""

from ._kernel_enum_gen import *  # noqa: F403
from ._kernel_ops_gen import *  # noqa: F403
from ._kernel_ops_gen import _Dialect  # noqa: F401
