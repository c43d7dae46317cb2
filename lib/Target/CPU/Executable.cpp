// Objects loaded into this process, and calls of their functions.
#include "lib/Target/CPU/Executable.h"
#include "lib/Target/CPU/MatrixUnit.h"
#include "lib/Target/CPU/Runtime.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace llvm;
using namespace lamina::cpu;

Executable::Executable(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}
Executable::~Executable() = default;

Expected<std::unique_ptr<Executable>> Executable::load(ArrayRef<std::string> objects) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    requestMatrixUnit();
  });
  orc::LLJITBuilder builder;
  // Kernels neither throw nor have static constructors, so the platform's support for them is left out.
  builder.setPlatformSetUp(orc::setUpInactivePlatform);
  auto jit = builder.create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &main = (*jit)->getMainJITDylib();

  orc::SymbolMap runtime;
  auto define = [&](StringRef name, auto *function) {
    runtime[(*jit)->mangleAndIntern(name)] = orc::ExecutorSymbolDef(
        orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported | JITSymbolFlags::Callable);
  };
  define("lamina_parallel", &lamina_parallel);
  define("lamina_launch", &lamina_launch);
  define("lamina_run", &lamina_run);
  define("lamina_scratch", &lamina_scratch);
  if (Error error = main.define(orc::absoluteSymbols(std::move(runtime))))
    return error;

  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  main.addGenerator(std::move(*process));
  for (const std::string &object : objects)
    if (Error error = (*jit)->addObjectFile(MemoryBuffer::getMemBufferCopy(object, "lamina")))
      return error;
  return std::unique_ptr<Executable>(new Executable(std::move(*jit)));
}

Expected<void *> Executable::lookup(StringRef name) {
  auto address = jit->lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}
