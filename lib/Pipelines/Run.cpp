// Parsing modules and running pass pipelines, with diagnostics as text and crashes as a result.
#include "lib/Pipelines/Run.h"
#include "lib/Support/CrashRecovery.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lamina;

namespace {

void printDiagnostic(raw_ostream &stream, Diagnostic &diagnostic, StringRef indent) {
  static constexpr StringLiteral names[] = {"note", "warning", "error", "remark"};
  stream << indent;
  if (!isa<UnknownLoc>(diagnostic.getLocation()))
    stream << diagnostic.getLocation() << ": ";
  stream << names[static_cast<unsigned>(diagnostic.getSeverity())] << ": " << diagnostic << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    printDiagnostic(stream, note, "  ");
}

/// Remembers the pass that is running, for the message after a crash.
class PassTracker : public PassInstrumentation {
public:
  PassTracker(std::string &current) : current(current) {}
  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty()) // the adaptors that hold nested pipelines
      return;
    current = ("'" + pass->getArgument() + "' on " + op->getName().getStringRef()).str();
    if (auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      current += (" @" + name.getValue()).str();
  }

private:
  std::string &current;
};

} // namespace

RunResult lamina::runCollecting(MLIRContext *context, llvm::function_ref<bool()> work) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      printDiagnostic(stream, diagnostic, "");
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
  });
  // Crashes are caught on this thread only.
  bool threads = context->isMultithreadingEnabled();
  if (threads)
    context->disableMultithreading();
  bool succeeded = false;
  std::string reason;
  bool finished = runSafely([&] { succeeded = work(); }, &reason);
  if (!finished) {
    if (!reason.empty())
      message += reason + "\n";
    return {RunStatus::Crash, message};
  }
  if (threads)
    context->enableMultithreading();
  while (!message.empty() && message.back() == '\n')
    message.pop_back();
  return {succeeded ? RunStatus::Success : RunStatus::Failure, message};
}

RunResult lamina::runPipeline(Operation *op, StringRef pipeline) {
  std::string running, parseError;
  // Not destroyed after a crash, which may have come in the middle of a change to it.
  PassManager *passes = nullptr;
  RunResult result = runCollecting(op->getContext(), [&] {
    passes = new PassManager(op->getContext(), op->getName().getStringRef());
    passes->addInstrumentation(std::make_unique<PassTracker>(running));
    llvm::raw_string_ostream errors(parseError);
    // "builtin.module(...)" names the anchor; strip it, as the pass manager has it already.
    StringRef text = pipeline.trim();
    StringRef anchor = op->getName().getStringRef();
    if (text.starts_with(anchor) && text.drop_front(anchor.size()).ltrim().starts_with("(") && text.ends_with(")"))
      text = text.drop_front(anchor.size()).ltrim().drop_front().drop_back();
    if (failed(parsePassPipeline(text, *passes, errors)))
      return false;
    return succeeded(passes->run(op));
  });
  if (result.status != RunStatus::Crash)
    delete passes;
  if (result.status == RunStatus::Success)
    return result;
  if (!parseError.empty())
    result.message = parseError;
  if (result.status == RunStatus::Crash)
    result.message = "crash in the pass " + (running.empty() ? std::string("manager") : running) +
                     (result.message.empty() ? "" : "\n" + result.message);
  else if (result.message.empty())
    result.message = "the pass " + running + " failed";
  return result;
}

/// Whether brackets are nested deeper than any program needs: what is made of them is later printed and destroyed by
/// recursion on the caller's stack.
static bool isNestedTooDeeply(StringRef text) {
  constexpr int kMost = 1000;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char letter = text[i], before = i ? text[i - 1] : ' ', after = i + 1 < text.size() ? text[i + 1] : ' ';
    if (letter == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
    } else if (letter == '/' && after == '/') {
      i = std::min(text.find('\n', i), text.size());
    } else {
      // Of a comparison or an arrow, these are no brackets.
      bool isOperator = (letter == '<' && after == '=') || (letter == '>' && (after == '=' || before == '-'));
      if (!isOperator && StringRef("([{<").contains(letter) && ++depth > kMost)
        return true;
      if (!isOperator && StringRef(")]}>").contains(letter))
        depth = std::max(depth - 1, 0);
    }
  }
  return false;
}

RunResult lamina::parseModule(MLIRContext *context, StringRef text, StringRef name, OwningOpRef<ModuleOp> &result) {
  if (isNestedTooDeeply(text))
    return {RunStatus::Failure, (name + ": error: brackets are nested too deeply").str()};
  ModuleOp module;
  RunResult run = runCollecting(context, [&] {
    ParserConfig config(context);
    module = parseSourceString<ModuleOp>(text, config, name).release();
    return static_cast<bool>(module);
  });
  if (run.status == RunStatus::Success)
    result = module;
  return run;
}
