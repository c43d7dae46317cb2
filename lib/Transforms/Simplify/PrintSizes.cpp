// lamina-print-sizes: the size expressions of a function's tensors, as remarks.
#include "dialects/Prim/PrimSizes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"

namespace lamina {
#define GEN_PASS_DEF_PRINTSIZES
#include "lib/Transforms/Simplify/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {
struct PrintSizesPass : lamina::impl::PrintSizesBase<PrintSizesPass> {
  void runOnOperation() override {
    SizeAnalysis analysis(getOperation());
    getOperation()->walk([&](Operation *op) {
      SmallVector<std::string> texts;
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType())) {
          auto sizes = llvm::map_range(analysis.getSizes(result), toString);
          texts.push_back("[" + llvm::join(sizes, ", ") + "]");
        }
      if (!texts.empty())
        op->emitRemark("sizes ") << llvm::join(texts, ", ");
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
