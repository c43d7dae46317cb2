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

    **Panels.** A B whose strides say that it lies in panels `[panel, k, column]`, the columns of a panel a multiple of the
    lanes, is read where it is. So is one in panels `[panel, k / 2, column, 2]`, where two rows alternate.

    **Matrix unit.** With `matrix-unit` a bf16 contraction with f32 sums runs on AMX tiles of 16 rows by 64 bytes: B in
    panels of alternating rows, as constants come and as others are copied, A where it is if its rows are whole tiles,
    else in a copy padded with zeros. Tiles are configured before the op and released after it.

    Ops marked neither `lamina.contraction` nor `lamina.convolution` are taken only if they have a reduction and a row or column loop. Ops that do not match
    are left alone; a remark says so for those marked `lamina.contraction` or `lamina.convolution`.
    The work is constant for an op; the code has about `4 * rows * vectors` instructions for each kernel, and an op has one
    or two kernels.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect", "mlir::LLVM::LLVMDialect",
                           "mlir::vector::VectorDialect"];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "512", "bits of a vector register: 512, 256 or 128">,
    Option<"blockBytes", "block-bytes", "int64_t", "524288",
           "bytes of B, packed or not, that are read again for each tile of rows: a quarter of the L2 cache">,
    Option<"matrixUnit", "matrix-unit", "bool", "false", "whether there are AMX tiles for bf16; they are used with vectors of 512 bits">
  ];
  let statistics = [
    Statistic<"numLowered", "lowered", "contractions and convolutions lowered">,
    Statistic<"numPacked", "packed", "of them, those that pack B">
  ];
}

#endif
