// Python: parsing modules and running pass pipelines.
#include "lib/Bindings/Python/Bindings.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;
using namespace lamina::python;

void lamina::python::addPipelines(nb::module_ &m) {
  m.def(
      "run_pipeline",
      [](nb::object object, const std::string &pipeline) {
        auto op = nb::cast<MlirOperation>(object);
        std::string error;
        LaminaStatus status;
        {
          nb::gil_scoped_release release;
          status = laminaRunPipeline(op, toRef(pipeline), append, &error);
        }
        check(status, error, object);
      },
      nb::arg("op"), nb::arg("pipeline"),
      "Runs a textual pass pipeline on an operation, in place. Python objects of operations inside it must not be "
      "used afterwards. Raises CompilerError, or CompilerCrash when a pass crashed: its context is then lost.");
  m.def(
      "parse_module",
      [](const std::string &text, nb::object object, const std::string &name) {
        auto context = nb::cast<MlirContext>(object);
        std::string error;
        MlirModule module;
        LaminaStatus status;
        {
          nb::gil_scoped_release release;
          status = laminaParseModule(context, toRef(text), toRef(name), &module, append, &error);
        }
        check(status, error, object);
        return module;
      },
      nb::arg("text"), nb::arg("context"), nb::arg("name") = "<text>",
      "Parses and verifies a module. Raises CompilerError with the place of the error, or CompilerCrash.");
}
