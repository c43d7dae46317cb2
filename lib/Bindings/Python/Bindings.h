// What the files of the Python extension share: its parts, and errors of the C API as exceptions.
#ifndef LAMINA_BINDINGS_PYTHON_H
#define LAMINA_BINDINGS_PYTHON_H

#include "lib/Bindings/CAPI.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <string>

namespace lamina::python {

/// Defines the module's exceptions.
void addErrors(nanobind::module_ &m);
/// Parsing and pipelines.
void addPipelines(nanobind::module_ &m);
/// Code generation and execution on the CPU.
void addCPU(nanobind::module_ &m);

/// Raises CompilerError or CompilerCrash unless `status` is success. After a crash `subject` (an operation, module or
/// context) is kept for ever: to destroy what a pass left half changed could crash again.
void check(LaminaStatus status, const std::string &message, nanobind::handle subject = {});

/// The callback that appends to a std::string.
inline void append(MlirStringRef text, void *string) {
  static_cast<std::string *>(string)->append(text.data, text.length);
}
inline MlirStringRef toRef(const std::string &text) { return mlirStringRefCreate(text.data(), text.size()); }

} // namespace lamina::python
#endif
