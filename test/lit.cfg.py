"""Configuration of the lit tests: `lit test` from the root of the repository."""

import importlib.util
import os

import lit.formats
import llvm

config.name = "lamina"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.path.join(config.test_source_root, "Output")  # noqa: F821

# lamina-opt: of the source tree where it was built in place, else of the installed package, else of PATH.
folders = [os.path.join(config.test_source_root, "..", "python", "lamina", "_lib")]  # noqa: F821
spec = importlib.util.find_spec("lamina")
if spec is not None:
    folders += [os.path.join(path, "_lib") for path in spec.submodule_search_locations]
folders = [path for path in folders if os.path.exists(os.path.join(path, "lamina-opt"))][:1]
# FileCheck and not, of the LLVM that Lamina is built with.
folders.append(os.path.join(os.path.dirname(llvm.__file__), "bin"))
config.environment["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])  # noqa: F821
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"  # noqa: F821
