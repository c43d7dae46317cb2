// The Python extension: Lamina's dialects, passes and code generation, in the MLIR of the process.
#include "lib/Bindings/Python/Bindings.h"

namespace nb = nanobind;

NB_MODULE(_lamina, m) {
  // Objects that outlive the interpreter are those of modules that are never unloaded.
  nb::set_leak_warnings(false);
  laminaRegisterPasses();
  m.def(
      "register_dialects", [](MlirContext context) { laminaRegisterDialects(context); }, nb::arg("context"),
      "Registers and loads Lamina's dialects in a context.");
  m.def(
      "release_resident_pages",
      [] {
        nb::gil_scoped_release release;
        laminaReleaseResidentPages();
      },
      "Gives back the memory pages of the compiler's code that were touched; what is used again is mapped again.");
  lamina::python::addErrors(m);
  lamina::python::addPipelines(m);
  lamina::python::addCPU(m);
  // The loader has read all symbol tables.
  laminaReleaseResidentPages();
}
