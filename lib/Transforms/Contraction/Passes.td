// Passes that turn contractions and convolutions into loops around register kernels.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_PASSES
#define LAMINA_TRANSFORMS_CONTRACTION_PASSES

include "mlir/Pass/PassBase.td"

def LowerContractions : Pass<"lamina-lower-contractions"> {
  let summary = "contractions and convolutions on memrefs to cache-blocked loops around register kernels";
  let description = [{
    Takes every structured op on memrefs with two inputs and one output whose body is `c + a * b`, the inputs extended to
    the accumulator's type (f32, f64 or an integer) or not, and whose maps are linear in the loops, so that each loop is

    1. batch: in A, B and C,
    2. m: in A and C, a row,
    3. n: in B and C, a column,
    4. k: in A and B, a reduction.

    A convolution is the same with a map that adds two loops (`y * stride + ky * dilation`); its pixels are columns and its
    kernel taps are rows of B. Groups may be empty or have several loops. Sizes and strides may be dynamic; there is fast
    code where C has a unit stride in a row or column and B has one in a row or column.

    The code: blocks of columns of B are copied to panels of `vectors * lanes` columns (row by row, by transposes in
    registers, or pixel by pixel), and for each tile of rows and each panel a loop over k keeps `rows * vectors`
    accumulators in registers. The register tile is chosen for each op by a model of the time of one step of k. With few
    rows B is read in place; with few rows and both operands contiguous in k, dot products run along k. Scratch is
    `memref.alloc` of static size, before all loops, never freed.

    A `linalg.fill` with zero of the output just before the op is removed, and the accumulators start at zero.

    **Packed B.** An op with `lamina.packed_b = w : i64` has B of shape `[ceil(N / w), K, w]`, element `[p, k, j]` being
    `B[k, p * w + j]`, with zeros where `p * w + j >= N`. The last dimension has stride 1 and `w` is a multiple of the
    lanes (512 / bits of the accumulator). A memref of some of the panels (a subview of dimension 0) is the operand of a
    tile of columns that starts at a panel. B's own map is not read: rows are numbered in the order of the k loops;
    `(m, n, k) -> (n floordiv w, k, n mod w)` says the same and verifies. There is no batch loop.

    Ops marked neither `lamina.contraction` nor `lamina.convolution` are taken only if they have a reduction and a row or column loop. Ops that do not match
    are left alone; a remark says so for those marked `lamina.contraction` or `lamina.convolution`.
    The work is constant for an op; the code has about `4 * rows * vectors` instructions for each kernel, and an op has one
    or two kernels.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
                           "mlir::vector::VectorDialect"];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "512", "bits of a vector register: 512, 256 or 128">,
    Option<"blockBytes", "block-bytes", "int64_t", "524288",
           "bytes of B, packed or not, that are read again for each tile of rows: a quarter of the L2 cache">
  ];
  let statistics = [
    Statistic<"numLowered", "lowered", "contractions and convolutions lowered">,
    Statistic<"numPacked", "packed", "of them, those that pack B">
  ];
}

#endif
