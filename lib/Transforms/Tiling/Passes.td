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

    With `block-tiles`, a matrix product is cut into blocks of rows by columns: those of `kernel.tile` (rows, columns, and
    elements of the contracted dimension that are loaded at once), or those with which all multiprocessors are estimated to be
    done first, which become the kernel's `kernel.tile`. The estimate takes the longer of arithmetic and loads, for as many
    turns as there are programs for each multiprocessor. Of other kernels `kernel.elements`, if it is there, takes the place of
    `pointwise-elements` and `reduce-elements`.

    Programs of a kernel with a `kernel.scatter` share its updates, as many as elements of a pointwise kernel. Kernels with ops
    that have no tiles (loops of scatters) run as one program. Linear in the kernel, but for a producer that is
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
    Option<"multiprocessors", "multiprocessors", "int64_t", "132", "multiprocessors of the GPU">,
    Option<"matrixOps", "matrix-ops", "int64_t", "3750", "multiply-adds of 16-bit floats that a multiprocessor does in a nanosecond">,
    Option<"vectorOps", "vector-ops", "int64_t", "250", "multiply-adds of f32 that a multiprocessor does in a nanosecond">,
    Option<"loadBytes", "load-bytes", "int64_t", "40", "bytes that a multiprocessor loads from the L2 cache in a nanosecond">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448", "bytes of shared memory that a program may have">,
  ];
  let statistics = [
    Statistic<"numTiled", "tiled", "kernels that became a grid">,
    Statistic<"numSingle", "single", "kernels that are one program">,
  ];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect", "mlir::math::MathDialect",
    "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect", "lamina::kernel::KernelDialect"];
}
#endif
