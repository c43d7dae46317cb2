// The C API of Lamina: registration, pipelines, code generation.
#include "lib/Bindings/CAPI.h"
#include "lib/Pipelines/Run.h"
#include "lib/Register.h"
#include "lib/Support/CrashRecovery.h"
#include "lib/Support/ResidentPages.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/Executable.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

using namespace lamina;

namespace {

struct Sink {
  MlirStringCallback callback;
  void *data;
  void operator()(llvm::StringRef text) const { callback(wrap(text), data); }
};

LaminaStatus finish(const RunResult &result, Sink error) {
  if (result.status == RunStatus::Success)
    return LaminaSuccess;
  error(result.message);
  return result.status == RunStatus::Crash ? LaminaCrash : LaminaFailure;
}

cpu::CompileOptions convert(const LaminaCompileOptions &options) {
  return {
      {unwrap(options.cpu).str(), unwrap(options.features).str()}, options.level, options.vectorWidth, options.threads};
}

/// Runs code generation, whose own errors come as an llvm::Error.
template <typename T>
LaminaStatus generate(MlirModule module, llvm::function_ref<llvm::Expected<T>()> work, T &result, Sink error) {
  std::string message;
  RunResult run = runCollecting(unwrap(module)->getContext(), [&] {
    llvm::Expected<T> value = work();
    if (value)
      result = std::move(*value);
    else
      message = llvm::toString(value.takeError());
    return message.empty();
  });
  if (run.status == RunStatus::Crash)
    run.message = "crash in code generation" + (run.message.empty() ? "" : "\n" + run.message);
  else if (!message.empty())
    run.message = message + (run.message.empty() ? "" : "\n" + run.message);
  return finish(run, error);
}

} // namespace

struct LaminaExecutable {
  std::unique_ptr<cpu::Executable> executable;
};

void laminaRegisterDialects(MlirContext context) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  unwrap(context)->appendDialectRegistry(registry);
  unwrap(context)->loadAllAvailableDialects();
}

void laminaRegisterPasses(void) { registerPasses(); }

void laminaReleaseResidentPages(void) { releaseResidentPages(); }

LaminaStatus laminaRunPipeline(MlirOperation op, MlirStringRef pipeline, MlirStringCallback error, void *errorData) {
  return finish(runPipeline(unwrap(op), unwrap(pipeline)), {error, errorData});
}

LaminaStatus laminaParseModule(MlirContext context, MlirStringRef text, MlirStringRef name, MlirModule *result,
                               MlirStringCallback error, void *errorData) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  RunResult run = parseModule(unwrap(context), unwrap(text), unwrap(name), module);
  *result = wrap(module.release());
  return finish(run, {error, errorData});
}

void laminaHostProcessor(MlirStringRef *name, MlirStringRef *features) {
  const cpu::Processor &host = cpu::getHostProcessor();
  *name = wrap(llvm::StringRef(host.name));
  *features = wrap(llvm::StringRef(host.features));
}

LaminaStatus laminaEmit(MlirModule module, MlirStringRef kind, const LaminaCompileOptions *options,
                        MlirStringCallback result, void *resultData, MlirStringCallback error, void *errorData) {
  llvm::StringRef name = unwrap(kind);
  cpu::EmitKind emitKind = name == "llvm"  ? cpu::EmitKind::LLVMIR
                           : name == "asm" ? cpu::EmitKind::Assembly
                                           : cpu::EmitKind::Object;
  std::string text;
  LaminaStatus status = generate<std::string>(
      module, [&] { return cpu::emit(unwrap(module), emitKind, convert(*options)); }, text, {error, errorData});
  if (status == LaminaSuccess)
    result(wrap(llvm::StringRef(text)), resultData);
  return status;
}

LaminaStatus laminaCompileObjects(MlirModule module, const LaminaCompileOptions *options, MlirStringCallback result,
                                  void *resultData, MlirStringCallback error, void *errorData) {
  std::vector<std::string> objects;
  LaminaStatus status = generate<std::vector<std::string>>(
      module, [&] { return cpu::compileObjects(unwrap(module), convert(*options)); }, objects, {error, errorData});
  releaseResidentPages();
  if (status == LaminaSuccess)
    for (const std::string &object : objects)
      result(wrap(llvm::StringRef(object)), resultData);
  return status;
}

LaminaExecutable *laminaExecutableLoad(const MlirStringRef *objects, intptr_t count, MlirStringCallback error,
                                       void *errorData) {
  std::vector<std::string> copies;
  for (intptr_t i = 0; i < count; ++i)
    copies.push_back(unwrap(objects[i]).str());
  std::unique_ptr<cpu::Executable> executable;
  std::string message;
  bool finished = runSafely([&] {
    auto loaded = cpu::Executable::load(copies);
    if (loaded)
      executable = std::move(*loaded);
    else
      message = llvm::toString(loaded.takeError());
  });
  if (executable)
    return new LaminaExecutable{std::move(executable)};
  Sink{error, errorData}(finished ? message : "the linker crashed");
  return nullptr;
}

void laminaExecutableDestroy(LaminaExecutable *executable) { delete executable; }

void *laminaExecutableLookup(LaminaExecutable *executable, MlirStringRef name, MlirStringCallback error,
                             void *errorData) {
  void *result = nullptr;
  std::string message;
  // The first lookup links.
  bool finished = runSafely([&] {
    auto address = executable->executable->lookup(unwrap(name));
    if (address)
      result = *address;
    else
      message = llvm::toString(address.takeError());
  });
  if (!result)
    Sink{error, errorData}(finished ? message : "the linker crashed");
  return result;
}
