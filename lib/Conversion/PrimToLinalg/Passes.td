// Passes that turn prim into linalg.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_TD
#define LAMINA_CONVERSION_PRIM_TO_LINALG_TD
include "mlir/Pass/PassBase.td"

def ConvertPrimToLinalg : InterfacePass<"lamina-convert-prim-to-linalg", "mlir::FunctionOpInterface"> {
  let summary = "prim ops of a kernel.func or func.func become linalg, arith and math on tensors";
  let description = [{
    One `linalg.generic` is made for each value that is materialised; every other value is computed inside the bodies of
    its readers. Materialised are: results of reductions, contractions, convolutions, scans and scatters, what the function returns,
    and a value that is expensive (a division or a transcendental function) and read by more than one materialised value or
    repeated by a broadcast. Values over the same iteration space that do not wait for each other share a generic of several
    results. Contractions are marked `lamina.contraction`, convolutions `lamina.convolution`, and the loops of scans and scatters
    `lamina.scan` and `lamina.scatter`. With `parallel-scatters` a scatter is no loop: each element of the result is a reduction over
    all updates, of which it takes those that meet it; an assignment looks for the last of them. That costs the product of both
    sizes, and any program can compute any element. A scatter in place becomes `kernel.scatter`.

    Time and size of the result are linear in the function, but a value that is not materialised is computed once for each
    different index with which a body reads it. `prim.sort` is refused.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "compute values inside their readers although they have several">,
    Option<"mergeReductions", "merge-reductions", "bool", "true", "reductions share a generic with the value that they reduce">,
    Option<"parallelScatters", "parallel-scatters", "bool", "false",
           "a scatter is a reduction of each element over the updates that meet it, instead of a loop over the updates">,
  ];
  let statistics = [
    Statistic<"numGenerics", "generics", "linalg.generic ops made">,
    Statistic<"numMerged", "merged", "materialised values that share another's generic">,
  ];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
    "mlir::math::MathDialect", "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect", "lamina::kernel::KernelDialect"];
}
#endif
