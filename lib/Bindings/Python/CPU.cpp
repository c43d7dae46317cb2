// Python: code generation for the CPU, and calls of compiled programs.
#include "lib/Bindings/Python/Bindings.h"
#include "lib/Target/CPU/Runtime.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;
using namespace lamina::python;

namespace {

struct Options {
  std::string cpu, features;
  LaminaCompileOptions c;
  Options(std::optional<std::pair<std::string, std::string>> processor, int level, int vectorWidth, int threads) {
    if (processor)
      std::tie(cpu, features) = *processor;
    c = {toRef(cpu), toRef(features), level, vectorWidth, threads};
  }
};

nb::bytes toBytes(const std::string &text) { return nb::bytes(text.data(), text.size()); }

/// The integers of a Python list or tuple, without an allocation when they are few.
class Integers {
public:
  explicit Integers(nb::handle sequence) {
    nb::object fast = nb::steal(PySequence_Fast(sequence.ptr(), "a list of integers is expected"));
    if (!fast.is_valid())
      throw nb::python_error();
    Py_ssize_t size = PySequence_Fast_GET_SIZE(fast.ptr());
    PyObject **items = PySequence_Fast_ITEMS(fast.ptr());
    if (size > kInline) {
      heap.reset(new int64_t[size]);
      values = heap.get();
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
      values[i] = PyLong_AsLongLong(items[i]);
      if (values[i] == -1 && PyErr_Occurred())
        throw nb::python_error();
    }
  }
  int64_t *data() { return values; }

private:
  static constexpr Py_ssize_t kInline = 32;
  int64_t storage[kInline];
  std::unique_ptr<int64_t[]> heap;
  int64_t *values = storage;
};

/// Forwards a launch to a Python callable. What it raises cannot pass through compiled code, and is only reported.
void callHook(void *data, const char *name, int begin) {
  nb::gil_scoped_acquire acquire;
  PyObject *result = PyObject_CallFunction(static_cast<PyObject *>(data), "sO", name, begin ? Py_True : Py_False);
  if (!result)
    PyErr_WriteUnraisable(static_cast<PyObject *>(data));
  Py_XDECREF(result);
}

class Executable {
public:
  explicit Executable(nb::list objects) {
    std::vector<MlirStringRef> refs;
    for (nb::handle object : objects) {
      char *data;
      Py_ssize_t size;
      if (PyBytes_AsStringAndSize(object.ptr(), &data, &size))
        throw nb::python_error();
      refs.push_back(mlirStringRefCreate(data, size));
    }
    std::string error;
    {
      nb::gil_scoped_release release;
      executable = laminaExecutableLoad(refs.data(), refs.size(), append, &error);
    }
    check(executable ? LaminaSuccess : LaminaFailure, error);
  }
  ~Executable() { laminaExecutableDestroy(executable); }
  Executable(const Executable &) = delete;

  void *lookup(const std::string &name) {
    auto it = addresses.find(name);
    if (it != addresses.end())
      return it->second;
    std::string error;
    void *address;
    {
      nb::gil_scoped_release release;
      address = laminaExecutableLookup(executable, toRef(name), append, &error);
    }
    check(address ? LaminaSuccess : LaminaFailure, error);
    return addresses[name] = address;
  }

  void call(const std::string &name, nb::handle args, nb::handle symbols, intptr_t arena, nb::handle hook) {
    auto function = reinterpret_cast<void (*)(int64_t *, int64_t *, void *)>(lookup(name));
    Integers pointers(args), values(symbols);
    bool hooked = !hook.is_none();
    nb::object keep = nb::borrow(hook);
    nb::gil_scoped_release release;
    if (hooked)
      lamina_set_launch_hook(callHook, hook.ptr());
    function(pointers.data(), values.data(), reinterpret_cast<void *>(arena));
    if (hooked)
      lamina_set_launch_hook(nullptr, nullptr);
  }

  /// Runs one kernel in a parallel region.
  void launch(const std::string &name, nb::handle block, int64_t programs) {
    auto kernel = reinterpret_cast<LaminaKernel>(lookup(name));
    Integers values(block);
    nb::gil_scoped_release release;
    lamina_launch(kernel, values.data(), programs, name.c_str());
  }

private:
  LaminaExecutable *executable;
  /// Guarded by the GIL.
  std::unordered_map<std::string, void *> addresses;
};

} // namespace

void lamina::python::addCPU(nb::module_ &m) {
  m.def(
      "host_cpu",
      [] {
        MlirStringRef name, features;
        laminaHostProcessor(&name, &features);
        return std::make_pair(std::string(name.data, name.length), std::string(features.data, features.length));
      },
      "The host's processor as LLVM names it, and its features ('+avx2,-sse4a,...').");
  m.def(
      "num_threads", [] { return lamina_num_threads(); },
      "The number of threads that a launch from this thread may use.");
  m.def(
      "emit",
      [](nb::object object, const std::string &kind, std::optional<std::pair<std::string, std::string>> processor,
         int level, int vectorWidth) -> nb::object {
        if (kind != "llvm" && kind != "asm" && kind != "obj")
          throw nb::value_error("kind must be 'llvm', 'asm' or 'obj'");
        auto module = mlirModuleFromOperation(nb::cast<MlirOperation>(object.attr("operation")));
        Options options(std::move(processor), level, vectorWidth, 1);
        std::string result, error;
        LaminaStatus status;
        {
          nb::gil_scoped_release release;
          status = laminaEmit(module, toRef(kind), &options.c, append, &result, append, &error);
        }
        check(status, error, object);
        if (kind == "obj")
          return toBytes(result);
        return nb::str(result.data(), result.size());
      },
      nb::arg("module"), nb::arg("kind") = "llvm", nb::arg("processor") = nb::none(), nb::arg("level") = 1,
      nb::arg("vector_width") = 0,
      "LLVM IR or assembly text, or the bytes of one object, of a module in the LLVM dialect. `processor` is (name, "
      "features), by default the host; `level` 0 to 3 chooses LLVM's IR passes; `vector_width` is in bits, 0 the "
      "widest.");
  m.def(
      "compile_objects",
      [](nb::object object, std::optional<std::pair<std::string, std::string>> processor, int level, int vectorWidth,
         int threads) {
        auto module = mlirModuleFromOperation(nb::cast<MlirOperation>(object.attr("operation")));
        Options options(std::move(processor), level, vectorWidth, threads);
        std::vector<std::string> objects;
        std::string error;
        LaminaStatus status;
        {
          nb::gil_scoped_release release;
          auto add = [](MlirStringRef text, void *data) {
            static_cast<std::vector<std::string> *>(data)->emplace_back(text.data, text.length);
          };
          status = laminaCompileObjects(module, &options.c, add, &objects, append, &error);
        }
        check(status, error, object);
        nb::list result;
        for (const std::string &object : objects)
          result.append(toBytes(object));
        return result;
      },
      nb::arg("module"), nb::arg("processor") = nb::none(), nb::arg("level") = 1, nb::arg("vector_width") = 0,
      nb::arg("threads") = 0,
      "The objects of a module in the LLVM dialect, made by `threads` threads (0: all); options as in emit.");
  nb::class_<Executable>(m, "Executable", "Objects that are loaded into this process.")
      .def(nb::init<nb::list>(), nb::arg("objects"))
      .def("call", &Executable::call, nb::arg("name"), nb::arg("args"), nb::arg("symbols"), nb::arg("arena"),
           nb::arg("hook") = nb::none(),
           "Calls a host function with the addresses of its arguments, the values of its index symbols and the address "
           "of its arena. `hook(kernel, begin)` is called before (True) and after (False) each kernel.")
      .def("launch", &Executable::launch, nb::arg("name"), nb::arg("block"), nb::arg("programs"),
           "Runs `programs` programs of one kernel on its block of argument addresses and symbol values.")
      .def(
          "address", [](Executable &self, const std::string &name) { return (uintptr_t)self.lookup(name); },
          nb::arg("name"), "The address of a function.");
}
