// lamina-vectorize-loops: linalg ops on buffers become loops over vectors.
#include "lib/Support/PassOptions.h"
#include "lib/Transforms/Vectorize/NestEmitter.h"
#include "lib/Transforms/Vectorize/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace lamina {
#define GEN_PASS_DEF_VECTORIZELOOPS
#include "lib/Transforms/Vectorize/Passes.h.inc"
} // namespace lamina

using namespace mlir;
using namespace lamina;

namespace {
struct VectorizeLoops : lamina::impl::VectorizeLoopsBase<VectorizeLoops> {
  using VectorizeLoopsBase::VectorizeLoopsBase;

  LogicalResult initialize(MLIRContext *context) override {
    return OptionCheck(*this, context).oneOf(vectorBits, {128, 256, 512}, "512, 256 or 128").atLeast(unroll, 1);
  }

  void runOnOperation() override {
    OpBuilder b(&getContext());
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) {
      if (isa<MemRefType>(copy.getSource().getType()) && isa<MemRefType>(copy.getTarget().getType()))
        copies.push_back(copy);
    });
    for (memref::CopyOp copy : copies) {
      b.setInsertionPoint(copy);
      linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(), copy.getTarget());
      copy.erase();
    }
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      b.setInsertionPoint(op);
      FailureOr<LoopNest> nest = LoopNest::get(b, op, {vectorBits, unroll});
      if (failed(nest)) {
        op.emitError("cannot be vectorized: an operand's layout is not strided, or the size of a loop is unknown");
        return signalPassFailure();
      }
      if (nest->vectorLoop < 0) {
        ++numScalar;
        if (!nest->loops.empty())
          remark::missed(op.getLoc(), remark::RemarkOpts::name("VectorizeLoops").category("lamina-vectorize"))
              << (nest->sequential
                      ? "a reduction is not of the form combiner(accumulator, expression): it runs in order"
                      : "the body has no vector form: it runs one element at a time");
      } else {
        ++numVectorized;
      }
      NestEmitter(b, *nest).emit();
      op.erase();
    }
  }
};
} // namespace
