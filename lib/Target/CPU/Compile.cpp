// From a module in the LLVM dialect to LLVM IR, assembly text or objects for a CPU.
#include "lib/Target/CPU/Compile.h"
#include "lib/Support/CrashRecovery.h"
#include "lib/Support/ResidentPages.h"
#include "lib/Target/CPU/MaskedStores.h"
#include "lib/Target/CPU/MatrixUnit.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <mutex>
#include <thread>

using namespace llvm;
using namespace lamina::cpu;

namespace {

/// Explicit vectors come from MLIR; what is left for LLVM is to clean scalars and addresses and to hoist. The whole of
/// -O2 makes code of the same speed in three times the time.
/// instcombine is told not to verify that once was enough: that ends the process where it was not.
constexpr StringLiteral kShortPipeline = "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg),"
                                         "function(loop-simplify,lcssa,loop-mssa(licm)),"
                                         "function(gvn,instcombine<no-verify-fixpoint>,simplifycfg),globaldce";

Error makeError(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

void initializeLLVM() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
  });
}

/// CompileOptions with nothing left to choose.
struct Resolved {
  Processor processor;
  int level;
  int vectorWidth;
};

Resolved resolve(const CompileOptions &options) {
  Resolved resolved{options.processor, options.level, options.vectorWidth};
  if (resolved.processor.name.empty())
    resolved.processor = getHostProcessor();
  // LLVM prefers 256 bits on the older models that a virtual machine may claim to be.
  if (!resolved.vectorWidth && StringRef(resolved.processor.features).contains("+avx512f"))
    resolved.vectorWidth = 512;
  return resolved;
}

Expected<std::unique_ptr<TargetMachine>> createMachine(const Resolved &options) {
  initializeLLVM();
  Triple triple(sys::getProcessTriple());
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError(error);
  TargetOptions targetOptions;
  // A product and a sum round twice, as in eager PyTorch; what may be fused is fma in the IR already.
  targetOptions.AllowFPOpFusion = FPOpFusion::Strict;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, options.processor.name, options.processor.features, targetOptions, Reloc::PIC_,
      // Not the large model that LLVM takes for a JIT: constants are operands of instructions, and JITLink puts stubs
      // where a function is far away.
      CodeModel::Small, options.level >= 3 ? CodeGenOptLevel::Aggressive : CodeGenOptLevel::Default, /*JIT=*/false));
  if (!machine)
    return makeError("LLVM has no code generator for " + triple.str());
  return machine;
}

/// Keeps errors of LLVM's passes and code generation, which would otherwise end the process.
class ErrorCollector : public DiagnosticHandler {
public:
  ErrorCollector(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const DiagnosticInfo &diagnostic) override {
    if (diagnostic.getSeverity() != DS_Error)
      return true;
    raw_string_ostream stream(errors);
    DiagnosticPrinterRawOStream printer(stream);
    diagnostic.print(printer);
    stream << "\n";
    return true;
  }

private:
  std::string &errors;
};

void setTarget(Module &module, TargetMachine &machine, const Resolved &options) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", options.processor.name);
    function.addFnAttr("target-features", options.processor.features);
    if (options.vectorWidth)
      function.addFnAttr("prefer-vector-width", std::to_string(options.vectorWidth));
    function.addFnAttr(Attribute::NoUnwind);
  }
}

Error optimize(Module &module, TargetMachine &machine, int level) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  ModulePassManager passes;
  if (level <= 0)
    passes = builder.buildO0DefaultPipeline(OptimizationLevel::O0);
  else if (level >= 2)
    passes = builder.buildPerModuleDefaultPipeline(level == 2 ? OptimizationLevel::O2 : OptimizationLevel::O3);
  else if (Error error = builder.parsePassPipeline(passes, kShortPipeline))
    return error;
  passes.run(module, modules);
  return Error::success();
}

Expected<std::string> emitModule(Module &module, EmitKind kind, const Resolved &options) {
  auto machine = createMachine(options);
  if (!machine)
    return machine.takeError();
  setTarget(module, **machine, options);
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
  auto checkErrors = [&] {
    module.getContext().setDiagnosticHandler(nullptr);
    return errors.empty() ? Error::success() : makeError(StringRef(errors).rtrim());
  };
  if (Error error = optimize(module, **machine, options.level))
    return error;
  replaceStoresOfOneLane(module);
  if (kind == EmitKind::LLVMIR) {
    std::string text;
    raw_string_ostream stream(text);
    module.print(stream, nullptr);
    if (Error error = checkErrors())
      return error;
    return text;
  }
  SmallVector<char, 0> buffer;
  raw_svector_ostream stream(buffer);
  legacy::PassManager passes;
  auto type = kind == EmitKind::Object ? CodeGenFileType::ObjectFile : CodeGenFileType::AssemblyFile;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, type))
    return makeError("LLVM cannot write this kind of file for the target");
  passes.run(module);
  if (Error error = checkErrors())
    return error;
  return std::string(buffer.data(), buffer.size());
}

Expected<std::unique_ptr<Module>> translate(mlir::ModuleOp module, LLVMContext &context) {
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(module, context);
  if (!result)
    return makeError("the module could not be translated to LLVM IR");
  return result;
}

/// The part of each function that is defined in `module`: the largest functions first, each to the lightest part.
StringMap<unsigned> partition(Module &module, unsigned &parts) {
  SmallVector<std::pair<unsigned, StringRef>> functions;
  for (Function &function : module)
    if (!function.isDeclaration())
      functions.push_back({function.getInstructionCount(), function.getName()});
  parts = std::max<unsigned>(1, std::min<size_t>(parts, functions.size()));
  sort(functions, [](auto &a, auto &b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  SmallVector<unsigned> weights(parts);
  StringMap<unsigned> partOf;
  for (auto &[weight, name] : functions) {
    unsigned part = std::min_element(weights.begin(), weights.end()) - weights.begin();
    weights[part] += weight + 1;
    partOf[name] = part;
  }
  return partOf;
}

Expected<std::string> compilePart(StringRef bitcode, const StringMap<unsigned> &partOf, unsigned part,
                                  const Resolved &options) {
  LLVMContext context;
  auto module = getOwningLazyBitcodeModule(MemoryBuffer::getMemBuffer(bitcode, "", false), context);
  if (!module)
    return module.takeError();
  // A body that is dropped before it is read costs nothing.
  for (Function &function : **module) {
    auto it = partOf.find(function.getName());
    if (it != partOf.end() && it->second != part)
      function.deleteBody();
  }
  if (Error error = (*module)->materializeAll())
    return error;
  return emitModule(**module, EmitKind::Object, options);
}

} // namespace

const Processor &lamina::cpu::getHostProcessor() {
  static const Processor host = [] {
    SubtargetFeatures features;
    // Linux gives the tile registers of AMX only to a process that asks for them, and may refuse.
    bool matrixUnit = requestMatrixUnit();
    for (auto &[name, enabled] : sys::getHostCPUFeatures())
      features.AddFeature(name, enabled && (matrixUnit || !name.starts_with("amx")));
    return Processor{sys::getHostCPUName().str(), features.getString()};
  }();
  return host;
}

Expected<std::string> lamina::cpu::emit(mlir::ModuleOp module, EmitKind kind, const CompileOptions &options) {
  LLVMContext context;
  auto translated = translate(module, context);
  if (!translated)
    return translated.takeError();
  return emitModule(**translated, kind, resolve(options));
}

Expected<std::vector<std::string>> lamina::cpu::compileObjects(mlir::ModuleOp module, const CompileOptions &options) {
  Resolved resolved = resolve(options);
  LLVMContext context;
  auto translated = translate(module, context);
  if (!translated)
    return translated.takeError();
  // What follows is LLVM's alone.
  releaseResidentPages();
  unsigned parts = options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
  StringMap<unsigned> partOf = partition(**translated, parts);
  if (parts == 1) {
    auto object = emitModule(**translated, EmitKind::Object, resolved);
    if (!object)
      return object.takeError();
    return std::vector<std::string>{std::move(*object)};
  }

  // A function may be called from another part.
  for (Function &function : **translated)
    if (!function.isDeclaration())
      function.setLinkage(GlobalValue::ExternalLinkage);
  for (GlobalVariable &variable : (*translated)->globals())
    if (!variable.isConstant() && variable.hasLocalLinkage())
      return makeError("@" + variable.getName() + " is a private variable, and the module is compiled in parts");
  SmallVector<char, 0> bitcode;
  raw_svector_ostream stream(bitcode);
  WriteBitcodeToFile(**translated, stream);

  initializeLLVM();
  std::vector<std::string> objects(parts), errors(parts);
  auto work = [&](unsigned part) {
    std::string reason;
    auto compile = [&] {
      auto object = compilePart(StringRef(bitcode.data(), bitcode.size()), partOf, part, resolved);
      if (object)
        objects[part] = std::move(*object);
      else
        errors[part] = toString(object.takeError());
    };
    if (!runSafely(compile, &reason))
      errors[part] = "LLVM crashed while it generated code" + (reason.empty() ? "" : ": " + reason);
  };
  std::vector<std::thread> threads;
  for (unsigned part = 1; part < parts; ++part)
    threads.emplace_back(work, part);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    if (!error.empty())
      return makeError(error);
  return objects;
}

void lamina::cpu::registerTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
