// Passes that turn linalg ops on buffers into loops over vectors.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_PASSES_TD
#define LAMINA_TRANSFORMS_VECTORIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def VectorizeLoops : Pass<"lamina-vectorize-loops"> {
  let summary = "linalg ops on memrefs become scf.for loops with vector operations";
  let description = [{
    Each linalg op whose operands are memrefs (and `memref.copy`) becomes a nest
    of `scf.for`, one loop of which steps by a whole number of vectors. The
    remainder is one masked vector: there is no scalar clean-up loop.

    * Dimensions that lie together in memory in every operand are merged first.
    * The vector dimension is the one with the lowest cost per lane: contiguous
      accesses are cheap, broadcasts are free, gathers and scatters are dear.
    * A result that is `combiner(acc, expr)` is accumulated in registers. Along
      the vector dimension one vector of partial results is kept and combined
      at the end of the row (this reassociates the reduction); across it, each
      lane has its own accumulator. Lanes outside of the iteration space never
      reach an accumulator.
    * Any other reduction runs in order, as scalar loops (a remark says so).
    * Reads that are contiguous along another loop than the writes are done in
      squares, transposed by shuffles; the square is a `memref.alloca` at the
      entry of the function.
    * A load in the body whose last index follows the vector loop is contiguous;
      if that index is clamped, only the steps that cross the bound gather.
    * i1 buffers hold one byte an element, and are accessed as i8.

    Linear in the size of the bodies: each is emitted at most twice a loop.
    Left alone: ops on tensors, and operands whose layout is not strided.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "512", "bits of a vector register: 512, 256 or 128">,
    Option<"unroll", "unroll", "int64_t", "4", "registers processed in one step, while the values of a body fit in registers">
  ];
  let statistics = [
    Statistic<"numVectorized", "vectorized", "ops that became vector loops">,
    Statistic<"numScalar", "scalar", "ops that became scalar loops">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}
#endif
