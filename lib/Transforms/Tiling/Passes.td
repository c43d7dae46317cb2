// Passes that split kernels into programs.
#ifndef LAMINA_TRANSFORMS_TILING_TD
#define LAMINA_TRANSFORMS_TILING_TD
include "mlir/Pass/PassBase.td"

def TileKernels : InterfacePass<"lamina-tile-kernels", "mlir::FunctionOpInterface"> {
  let summary = "a kernel of linalg on tensors becomes one scf.forall over its programs";
  let description = [{
    The grid's dimensions are loop dimensions that every output has, that no reduction, contraction or scan of the kernel runs along
    and that no `tensor.extract` of a temporary needs whole. Inside the `scf.forall` each output's tile is
    computed from tiles of its producers, which are made once for each tile that is asked for; outputs are written by
    `tensor.parallel_insert_slice`. Loops that are no grid dimensions stay whole. A kernel without a grid keeps its ops, which
    then write to the outputs directly. `kernel.grid` is set to the number of programs in each grid dimension.

    In a kernel marked `kernel.online` the reductions of a softmax and the product that follows run in one loop over blocks
    of the reduced dimension, with a running maximum; nothing is as long as that dimension.

    Kernels with ops that have no tiles (scatters) run as one program. Linear in the kernel, but for a producer that is
    read at several offsets, of which there is one copy each.
  }];
  let options = [
    Option<"vectorLanes", "vector-lanes", "int64_t", "16", "f32 elements in a vector register">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "2097152", "bytes of cache that a core has for itself">,
    Option<"threads", "threads", "int64_t", "1", "threads that programs are dealt out to">,
    Option<"pointwiseElements", "pointwise-elements", "int64_t", "8192", "elements of a program without reductions">,
    Option<"reduceElements", "reduce-elements", "int64_t", "1024", "least elements that a program with reductions reads, if rows are short">,
    Option<"onlineElements", "online-elements", "int64_t", "512", "elements of the reduced dimension in a block of an online reduction">,
    Option<"blockTiles", "block-tiles", "bool", "false", "tiles are powers of two, and of contractions blocks of rows and columns, as programs of Triton take them">,
  ];
  let statistics = [
    Statistic<"numTiled", "tiled", "kernels that became a grid">,
    Statistic<"numSingle", "single", "kernels that are one program">,
  ];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect", "mlir::math::MathDialect",
    "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect", "lamina::kernel::KernelDialect"];
}
#endif
