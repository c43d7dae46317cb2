// The Python extension: registers Lamina's dialects and passes with the MLIR of the process.
#include "lib/Bindings/CAPI.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

namespace nb = nanobind;

NB_MODULE(_lamina, m) {
  m.def("register_dialects", [](MlirContext context) { laminaRegisterDialects(context); }, nb::arg("context"),
        "Registers and loads Lamina's dialects in a context.");
  m.def("register_passes", [] { laminaRegisterPasses(); }, "Registers Lamina's passes; calls after the first do nothing.");
}
