// Reductions, scans, sorting and contractions of prim.
#ifndef LAMINA_PRIM_REDUCTION_TD
#define LAMINA_PRIM_REDUCTION_TD
include "dialects/Prim/PrimBase.td"

def Prim_ReduceOp : Prim_InferredOp<"reduce"> {
  let summary = "combination of the elements along dims, which are dropped";
  let description = [{
    Nothing to combine gives the identity: 0 (sum), 1 (prod), the lowest value (max),
    the highest (min), false (any), true (all). The order within a reduction is free;
    sums of f16 and bf16 accumulate in f32; max and min give NaN if there is one.

    **Constraints.** C1: dims are unique and in range. C2: any and all take i1, sum
    and prod take numbers.

    **Element types.** all, as C2 says.

    ```mlir
    func.func @reduce(%x: tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = prim.reduce <sum> %x dims [1] : tensor<4x8xf32> to tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}
def Prim_ArgReduceOp : Prim_InferredOp<"arg_reduce"> {
  let summary = "index of the largest or smallest element along a dimension";
  let description = [{
    The index along dim of the first largest or smallest element. NaN counts as the
    largest for max and as the smallest for min.

    **Constraints.** C1: 0 <= dim < rank. C2: the size of dim is not 0.

    **Element types.** all; the result i64.

    ```mlir
    func.func @arg_reduce(%x: tensor<4x8xf32>) -> tensor<4xi64> {
      %0 = prim.arg_reduce <max> %x dim 1 : tensor<4x8xf32> to tensor<4xi64>
      return %0 : tensor<4xi64>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_ExtremumAttr:$extremum, I64Attr:$dim);
  let results = (outs Prim_IndexTensor:$result);
  let assemblyFormat = "$extremum $operand `dim` $dim attr-dict `:` type($operand) `to` type($result)";
}
def Prim_ScanOp : Prim_Op<"scan", [SameOperandsAndResultType]> {
  let summary = "running combination along a dimension";
  let description = [{
    result[..., i, ...] = operand[..., 0, ...] * ... * operand[..., i, ...], with * the
    combiner: the element itself is included.

    **Constraints.** C1: 0 <= dim < rank. C2: any and all take i1, sum and prod take
    numbers.

    **Element types.** all, as C2 says.

    ```mlir
    func.func @scan(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = prim.scan <sum> %x dim 1 : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, I64Attr:$dim);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_SortOp : Prim_InferredOp<"sort"> {
  let summary = "stable sort along a dimension";
  let description = [{
    The elements along dim in order, and the index that each had before. Equal
    elements keep their order, descending too; NaN counts as the largest.

    **Constraints.** C1: 0 <= dim < rank.

    **Element types.** all; the indices i64.

    ```mlir
    func.func @sort(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>) {
      %0, %1 = prim.sort %x dim 1 descending false : tensor<4x8xf32>
      return %0, %1 : tensor<4x8xf32>, tensor<4x8xi64>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, I64Attr:$dim, BoolAttr:$descending);
  let results = (outs Prim_Tensor:$values, Prim_IndexTensor:$indices);
  let assemblyFormat = "$operand `dim` $dim `descending` $descending attr-dict `:` type($operand)";
}
def Prim_ReduceWindowOp : Prim_Op<"reduce_window", [AllElementTypesMatch<["operand", "result"]>]> {
  let summary = "combination over windows";
  let description = [{
    Window w starts at w * strides - low and takes window_sizes elements, dilations
    apart. Elements outside the operand count as the combiner's identity.

    **Constraints.** C1: all lists have one entry a dimension; windows, strides and
    dilations are at least 1. C2: any and all take i1, sum and prod take numbers.
    C3: the result's size is
    (low + size + high - (window - 1) * dilation - 1) floordiv stride + 1.

    **Element types.** all, as C2 says.

    ```mlir
    func.func @reduce_window(%x: tensor<1x8xf32>) -> tensor<1x4xf32> {
      %0 = prim.reduce_window <max> %x window [1, 3] strides [1, 2] dilations [1, 1] low [0, 1] high [0, 1]
        : tensor<1x8xf32> to tensor<1x4xf32>
      return %0 : tensor<1x4xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, DenseI64ArrayAttr:$window_sizes, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `window` $window_sizes `strides` $strides `dilations` $dilations `low` $low `high` $high attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def Prim_DotGeneralOp : Prim_Op<"dot_general"> {
  let summary = "sum of products over contracted dimensions";
  let description = [{
    result[b..., m..., n...] = sum over k... of lhs[b, m, k] * rhs[b, n, k]: b are the
    batch dimensions, k the contracted ones, m and n what is free of lhs and rhs. The
    accumulation is in the result's element type, and its order is free.

    **Constraints.** C1: batch and contracted dimensions are unique, in range,
    disjoint, and of pairwise equal sizes. C2: the operands' element types are equal.
    C3: the result's dimensions are batch, then lhs free, then rhs free, in order.
    C4: the result's element type is the operands', or f32 for f16 and bf16. C5: with
    tf32 the operands are f32; they may then be rounded to 10 bits after the point.

    **Element types.** f64, f32, f16, bf16, i64, i32, i16, i8, ui8.

    ```mlir
    func.func @dot_general(%x: tensor<2x8x16xbf16>, %w: tensor<32x16xbf16>) -> tensor<2x8x32xf32> {
      %0 = prim.dot_general %x, %w batch [] x [] contract [2] x [1]
        : (tensor<2x8x16xbf16>, tensor<32x16xbf16>) -> tensor<2x8x32xf32>
      return %0 : tensor<2x8x32xf32>
    }
    ```
  }];
  let arguments = (ins Prim_NumberTensor:$lhs, Prim_NumberTensor:$rhs, DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract, UnitAttr:$tf32);
  let results = (outs Prim_NumberTensor:$result);
  let assemblyFormat = [{ $lhs `,` $rhs `batch` $lhs_batch `x` $rhs_batch `contract` $lhs_contract `x` $rhs_contract (`tf32` $tf32^)? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result) }];
  let hasVerifier = 1;
}
def Prim_ConvolutionOp : Prim_Op<"convolution"> {
  let summary = "sums of products over windows";
  let description = [{
    result[n, o, x...] = sum over i, k... of input[n, i, x * strides + k * dilations] *
    rhs[o, i, k...]. The input is lhs with lhs_dilations - 1 zeros between elements,
    then low zeros before and high after it. Its layout is N, C, spatial; that of rhs
    is O, C / groups, spatial; the groups of channels are convolved apart.

    **Constraints.** C1: there are 1 to 3 spatial dimensions, lists have one entry for
    each, and strides and dilations are at least 1. C2: groups divides O and C, and
    rhs has C / groups channels. C3: low and high may be negative, which crops.
    C4: element types and tf32 are as for dot_general. C5: the result is N, O and
    (low + input + high - (k - 1) * dilation - 1) floordiv stride + 1.

    **Element types.** f64, f32, f16, bf16.

    ```mlir
    func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<1x6x4x4xf32> {
      %0 = prim.convolution %x, %w strides [2, 2] low [1, 1] high [1, 1] lhs_dilations [1, 1] dilations [1, 1] groups 1
        : (tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x4x4xf32>
      return %0 : tensor<1x6x4x4xf32>
    }
    ```
  }];
  let arguments = (ins Prim_FloatTensor:$lhs, Prim_FloatTensor:$rhs, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    DenseI64ArrayAttr:$lhs_dilations, DenseI64ArrayAttr:$dilations, I64Attr:$groups, UnitAttr:$tf32);
  let results = (outs Prim_FloatTensor:$result);
  let assemblyFormat = [{ $lhs `,` $rhs `strides` $strides `low` $low `high` $high `lhs_dilations` $lhs_dilations `dilations` $dilations
    `groups` $groups (`tf32` $tf32^)? attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result) }];
  let hasVerifier = 1;
}
#endif
