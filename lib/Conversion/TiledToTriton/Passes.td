// Passes that turn tiled kernels into Triton IR.
#ifndef LAMINA_CONVERSION_TILED_TO_TRITON_TD
#define LAMINA_CONVERSION_TILED_TO_TRITON_TD
include "mlir/Pass/PassBase.td"

def ConvertTiledToTriton : Pass<"lamina-convert-tiled-to-triton", "mlir::ModuleOp"> {
  let summary = "tiled kernels become tt.funcs of one program for each iteration of their scf.forall";
  let description = [{
    The arguments of a `tt.func` are pointers to the kernel's inputs and outputs, then the values of its symbols. Its grid has one
    dimension: the product of `kernel.grid`, which it keeps; the position in it is taken apart, last dimension fastest; but in a kernel that is `kernel.grouped`
    the last two dimensions are walked in groups of 8 rows, so that neighbours share what they read.

    What a program stores is computed from what it reads, on demand. A dimension of bounded extent becomes an axis of blocks, of the
    next power of two, with a mask from the extent; a longer one, or one of unknown extent, becomes an `scf.for` over chunks. Each
    value is computed in the outermost loop that it depends on. A reduction selects the identity at its inactive elements.
    A contraction or convolution becomes `tt.dot` in loops along the contracted dimensions, in blocks of the longest, if both its
    operands have at least 16 rows or columns, of one dimension or several, and the program at most 32768 sums; else it becomes a
    reduction of products. A scan becomes `tt.scan`; a loop over chunks carries its total. A sort ranks each element by comparing it
    with all others: n^2 comparisons.

    Indices have 32 bits unless sizes, or the bounds of their symbols (`prim.symbols`), allow a launch an argument with more than
    2^31 - 1 elements; `kernel.index_bits` says so, and a caller must check arguments whose sizes have no bounds. Sizes that are not
    known are taken to be no multiple of anything. Pointers are marked as 16-byte aligned where every launch in the module passes
    a whole tensor or a view at an aligned offset; the memory of the host function's own arguments is taken to be aligned.

    With `descriptors`, or the attribute `kernel.descriptors`, operands of a product are read by tensor descriptors, which each
    program makes before its loop: without the attribute those of 16-bit floats or TF32 whose loop has 32 iterations or more. An
    operand is one if it is read as it is, its inner stride is 1, and its address and other strides are known to be multiples of
    16 bytes. Zeros are read outside of the tensor. The `tt.func` of a product says by the attribute whether it has any.

    A `kernel.scatter` becomes `tt.atomic_rmw`, of a block of as many updates as it has `elements`.

    Constants of several values and loops of scatters, which lamina-convert-prim-to-linalg can also make
    reductions of, are refused. The size of the result is linear in the kernel, but for values that
    are read at different indices, which are computed for each.
  }];
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "65536", "the most elements of a block: a power of two">,
    Option<"chunkElements", "chunk-elements", "int64_t", "2048", "elements of a block inside a loop over chunks: a power of two">,
    Option<"depth", "depth", "int64_t", "32", "elements along the contracted dimension in one tt.dot, where there is no kernel.tile: a power of two">,
    Option<"indexBits", "index-bits", "int64_t", "32", "bits of indices: 32 or 64">,
    Option<"descriptors", "descriptors", "bool", "false", "operands of long products are read by tensor descriptors">,
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "kernels converted">,
    Statistic<"numDots", "dots", "contractions that became tt.dot">,
    Statistic<"numDescribed", "described", "operands that are read by tensor descriptors">,
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect", "mlir::scf::SCFDialect", "lamina::tt::TTDialect"];
}
#endif
