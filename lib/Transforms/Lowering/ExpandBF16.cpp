// lamina-expand-bf16: conversions between f32 and bf16 by integer arithmetic.
#include "lib/Transforms/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace lamina {
#define GEN_PASS_DEF_EXPANDBF16
#include "lib/Transforms/Lowering/Passes.h.inc"
} // namespace lamina

using namespace mlir;

namespace {
struct ExpandBF16 : lamina::impl::ExpandBF16Base<ExpandBF16> {
  using ExpandBF16Base::ExpandBF16Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
