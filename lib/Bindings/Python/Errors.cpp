// The exceptions of the Python extension.
#include "lib/Bindings/Python/Bindings.h"

namespace nb = nanobind;

static PyObject *compilerError;
static PyObject *compilerCrash;

void lamina::python::addErrors(nb::module_ &m) {
  compilerError = PyErr_NewExceptionWithDoc(
      "lamina._lib._lamina.CompilerError",
      "The compiler found an error in its input; the message has MLIR's diagnostics with their locations.",
      PyExc_RuntimeError, nullptr);
  compilerCrash = PyErr_NewExceptionWithDoc("lamina._lib._lamina.CompilerCrash",
                                            "The compiler failed an assertion or crashed; the MLIR context that it "
                                            "worked in must not be used again.",
                                            compilerError, nullptr);
  m.attr("CompilerError") = nb::handle(compilerError);
  m.attr("CompilerCrash") = nb::handle(compilerCrash);
}

void lamina::python::check(LaminaStatus status, const std::string &message, nb::handle subject) {
  if (status == LaminaSuccess)
    return;
  if (status == LaminaCrash)
    subject.inc_ref();
  PyErr_SetString(status == LaminaCrash ? compilerCrash : compilerError, message.c_str());
  throw nb::python_error();
}
