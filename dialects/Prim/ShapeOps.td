// Ops of prim that make or rearrange elements without arithmetic.
#ifndef LAMINA_PRIM_SHAPE_TD
#define LAMINA_PRIM_SHAPE_TD
include "dialects/Prim/PrimBase.td"

def Prim_ConstantOp : Prim_Op<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small literal tensor";
  let description = [{
    Gives the elements written in the attribute. Large constants are function
    arguments with the attribute `prim.constant`, whose string is their key in the
    pool of constants.

    **Constraints.** C1: the value's type is the result's, and static.

    **Element types.** all.

    ```mlir
    func.func @constant() -> tensor<2x2xf32> {
      %0 = prim.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}
def Prim_SizeOp : Prim_Op<"size"> {
  let summary = "the value of a size expression";
  let description = [{
    Gives the value of an expression over the function's symbols as a 0-d tensor.

    **Constraints.** C1: value is one expression. C2: the result has rank 0.

    **Element types.** i64.

    ```mlir
    func.func @size(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<i64> {
      %0 = prim.size [s0 * 2] : tensor<i64>
      return %0 : tensor<i64>
    }
    ```
  }];
  let arguments = (ins AffineMapAttr:$value);
  let results = (outs Prim_IndexTensor:$result);
  let assemblyFormat = "custom<Exprs>($value) attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_IotaOp : Prim_Op<"iota"> {
  let summary = "the index along one dimension";
  let description = [{
    result[i0, ..., in] = i_dim, converted to the element type.

    **Constraints.** C1: 0 <= dim < rank. C2: sizes are given iff the result type
    has `?`, and agree with it.

    **Element types.** f64, f32, f16, bf16, i64, i32, i16, i8, ui8.

    ```mlir
    func.func @iota() -> tensor<2x3xi64> {
      %0 = prim.iota 1 : tensor<2x3xi64>
      return %0 : tensor<2x3xi64>
    }
    ```
  }];
  let arguments = (ins I64Attr:$dim, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_NumberTensor:$result);
  let assemblyFormat = "$dim (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Prim_BroadcastOp : Prim_Op<"broadcast"> {
  let summary = "repetition along new dimensions";
  let description = [{
    Operand dimension k becomes result dimension dims[k]; the other result
    dimensions repeat it: result[i] = operand[i_dims[0], ..., i_dims[n]]. A size of 1
    is not special: a dimension of size 1 is dropped by a reshape first.

    **Constraints.** C1: dims has one entry a dimension of the operand, strictly
    increasing, in range. C2: sizes of operand dimension k and result dimension
    dims[k] are equal. C3: element types are equal. C4: sizes are given iff the
    result type has `?`, and agree with it.

    **Element types.** all.

    ```mlir
    func.func @broadcast(%x: tensor<3xf32>) -> tensor<2x3xf32> {
      %0 = prim.broadcast %x dims [1] : tensor<3xf32> to tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$dims, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_TransposeOp : Prim_InferredOp<"transpose"> {
  let summary = "another order of the dimensions";
  let description = [{
    Result dimension k is operand dimension permutation[k].

    **Constraints.** C1: permutation holds each of 0..rank-1 once.

    **Element types.** all.

    ```mlir
    func.func @transpose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
      %0 = prim.transpose %x [2, 0, 1] : tensor<2x3x4xf32> to tensor<4x2x3xf32>
      return %0 : tensor<4x2x3xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand $permutation attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}
def Prim_ReshapeOp : Prim_Op<"reshape"> {
  let summary = "the same elements, in row-major order, under another shape";
  let description = [{
    The element at row-major position p of the result is the one at position p of
    the operand.

    **Constraints.** C1: operand and result have equally many elements. C2: element
    types are equal. C3: sizes are given iff the result type has `?`, and agree with it.

    **Element types.** all.

    ```mlir
    func.func @reshape(%x: tensor<?x8xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8)>}) -> tensor<?xf32> {
      %0 = prim.reshape %x sizes [s0 * 8] : tensor<?x8xf32> to tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_SliceOp : Prim_Op<"slice"> {
  let summary = "every strides-th element from starts up to limits";
  let description = [{
    result[i] = operand[starts + i * strides]; starts and limits are size
    expressions, one a dimension.

    **Constraints.** C1: starts, limits and strides have one entry a dimension.
    C2: 0 <= starts <= limits <= size. C3: strides >= 1. C4: the result's size is
    ceil((limit - start) / stride). C5: element types are equal.

    **Element types.** all.

    ```mlir
    func.func @slice(%x: tensor<8x10xf32>) -> tensor<8x3xf32> {
      %0 = prim.slice %x [0, 1] to [8, 10] step [1, 3] : tensor<8x10xf32> to tensor<8x3xf32>
      return %0 : tensor<8x3xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, AffineMapAttr:$starts, AffineMapAttr:$limits, DenseI64ArrayAttr:$strides);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand custom<Exprs>($starts) `to` custom<Exprs>($limits) `step` $strides attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_PadOp : Prim_Op<"pad", [AllElementTypesMatch<["operand", "value", "result"]>]> {
  let summary = "the operand with a value around it";
  let description = [{
    Puts low elements before and high elements after the operand in each dimension,
    all of them `value`. Amounts are size expressions.

    **Constraints.** C1: low and high have one entry a dimension, not negative.
    C2: value is 0-d. C3: the result's size is low + size + high.

    **Element types.** all; the value's, the operand's and the result's are equal.

    ```mlir
    func.func @pad(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<7xf32> {
      %0 = prim.pad %x, %v low [1] high [2] : tensor<4xf32>, tensor<f32> to tensor<7xf32>
      return %0 : tensor<7xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_Tensor:$value, AffineMapAttr:$low, AffineMapAttr:$high);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `,` $value `low` custom<Exprs>($low) `high` custom<Exprs>($high) attr-dict `:` type($operand) `,` type($value) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_ConcatenateOp : Prim_InferredOp<"concatenate"> {
  let summary = "operands one after the other along a dimension";
  let description = [{
    The result's size of dim is the sum of the operands'.

    **Constraints.** C1: there is at least one operand. C2: 0 <= dim < rank.
    C3: ranks, element types and the sizes outside dim are equal.

    **Element types.** all.

    ```mlir
    func.func @concatenate(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> tensor<6x3xf32> {
      %0 = prim.concatenate %x, %y dim 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
      return %0 : tensor<6x3xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Prim_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` functional-type($operands, $result)";
  let hasFolder = 1;
}
def Prim_ReverseOp : Prim_Op<"reverse", [SameOperandsAndResultType]> {
  let summary = "elements in opposite order along dims";
  let description = [{
    result[i] = operand[j] with j = size - 1 - i in the dimensions dims and j = i in
    the others.

    **Constraints.** C1: dims are unique and in range.

    **Element types.** all.

    ```mlir
    func.func @reverse(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = prim.reverse %x dims [1] : tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_GatherOp : Prim_InferredOp<"gather"> {
  let summary = "elements at indices that are data";
  let description = [{
    result[b..., p...] = operand with dimension dims[k] at indices[k][b...] and the
    other dimensions at p..., in their order. The dimensions b are those of an index
    tensor.

    **Constraints.** C1: dims are unique, in range, at least one, and there is one
    index tensor for each. C2: all index tensors have one type. C3: an index outside
    0..size-1 is an error of the program; negative ones are not wrapped.

    **Element types.** all; indices i64.

    ```mlir
    func.func @gather(%table: tensor<100x16xf32>, %i: tensor<2x5xi64>) -> tensor<2x5x16xf32> {
      %0 = prim.gather %table[%i] dims [0] : (tensor<100x16xf32>, tensor<2x5xi64>) -> tensor<2x5x16xf32>
      return %0 : tensor<2x5x16xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Variadic<Prim_IndexTensor>:$indices, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `[` $indices `]` `dims` $dims attr-dict `:` functional-type(operands, $result)";
}
def Prim_ScatterOp : Prim_Op<"scatter", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "the operand with updates at indices that are data";
  let description = [{
    The operand, with the element whose dimension dims[k] is at indices[k][b...] and
    whose other dimensions are at p... combined with updates[b..., p...], in the
    row-major order of the updates: replaced (assign), or added, multiplied, or the
    larger or smaller taken.

    With `ordered`, sums of floats are added up in that order whatever it costs. With
    `in_place` the order is any, and a kernel may change the operand's memory.

    **Constraints.** C1: dims are unique, in range, at least one, and there is one
    index tensor for each. C2: all index tensors have one type. C3: an index outside
    0..size-1 is an error of the program. C4: the updates' type is that of a gather
    with the same indices. C5: in place there are sums of i32, i64, f32 and f64, and
    extrema of i32 and i64.

    **Element types.** all; indices i64.

    ```mlir
    func.func @scatter(%x: tensor<100x16xf32>, %u: tensor<5x16xf32>, %i: tensor<5xi64>) -> tensor<100x16xf32> {
      %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<100x16xf32>, tensor<5x16xf32>, tensor<5xi64>) -> tensor<100x16xf32>
      return %0 : tensor<100x16xf32>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand, Prim_Tensor:$updates, Variadic<Prim_IndexTensor>:$indices, DenseI64ArrayAttr:$dims, Prim_ScatterModeAttr:$mode,
    UnitAttr:$ordered, UnitAttr:$in_place);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$mode $operand `,` $updates `[` $indices `]` `dims` $dims attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
}
#endif
