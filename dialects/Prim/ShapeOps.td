// Ops of prim that make or rearrange elements without arithmetic.
#ifndef LAMINA_PRIM_SHAPE_TD
#define LAMINA_PRIM_SHAPE_TD
include "dialects/Prim/PrimBase.td"

def Prim_ConstantOp : Prim_Op<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small literal tensor; large constants are function arguments with the attribute prim.constant";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}
def Prim_SizeOp : Prim_Op<"size"> {
  let summary = "a size expression over the function's symbols, as a 0-d i64 tensor: prim.size [s0 * 2]";
  let arguments = (ins AffineMapAttr:$value);
  let results = (outs Prim_IndexTensor:$result);
  let assemblyFormat = "custom<Exprs>($value) attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_IotaOp : Prim_Op<"iota"> {
  let summary = "result[i0, ..., in] = i_dim; C1: 0 <= dim < rank; C2: sizes given iff the type has ?";
  let arguments = (ins I64Attr:$dim, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_NumberTensor:$result);
  let assemblyFormat = "$dim (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_BroadcastOp : Prim_Op<"broadcast"> {
  let summary = "operand dimension k becomes result dimension dims[k]; the other result dimensions repeat it. C1: dims strictly increasing; C2: sizes of operand dimension k and result dimension dims[k] are equal (1 is not special); C3: element types equal; C4: sizes given iff the result type has ?";
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$dims, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_TransposeOp : Prim_InferredOp<"transpose"> {
  let summary = "result dimension k is operand dimension permutation[k]; C1: permutation is one of 0..rank-1";
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand $permutation attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}
def Prim_ReshapeOp : Prim_Op<"reshape"> {
  let summary = "the same elements in row-major order under another shape; C1: equal numbers of elements; C2: element types equal; C3: sizes given iff the result type has ?";
  let arguments = (ins Prim_Tensor:$operand, OptionalAttr<AffineMapAttr>:$sizes);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand (`sizes` custom<Exprs>($sizes)^)? attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_SliceOp : Prim_Op<"slice"> {
  let summary = "result[i] = operand[starts + i * strides]; starts and limits are size expressions, one a dimension. C1: rank of each list; C2: 0 <= starts <= limits <= size; C3: strides >= 1; C4: result size = ceil((limit - start) / stride)";
  let arguments = (ins Prim_Tensor:$operand, AffineMapAttr:$starts, AffineMapAttr:$limits, DenseI64ArrayAttr:$strides);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand custom<Exprs>($starts) `to` custom<Exprs>($limits) `step` $strides attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_PadOp : Prim_Op<"pad", [AllElementTypesMatch<["operand", "value", "result"]>]> {
  let summary = "operand with value before (low) and after (high) in each dimension; low and high are size expressions, not negative. C1: rank of each list; C2: value is 0-d; C3: result size = low + size + high";
  let arguments = (ins Prim_Tensor:$operand, Prim_Tensor:$value, AffineMapAttr:$low, AffineMapAttr:$high);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `,` $value `low` custom<Exprs>($low) `high` custom<Exprs>($high) attr-dict `:` type($operand) `,` type($value) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_ConcatenateOp : Prim_InferredOp<"concatenate"> {
  let summary = "operands one after the other along dim; C1: at least one operand; C2: 0 <= dim < rank; C3: sizes equal outside dim";
  let arguments = (ins Variadic<Prim_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` functional-type($operands, $result)";
  let hasFolder = 1;
}
def Prim_ReverseOp : Prim_Op<"reverse", [SameOperandsAndResultType]> {
  let summary = "elements in opposite order along dims; C1: dims unique and in range";
  let arguments = (ins Prim_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_GatherOp : Prim_InferredOp<"gather"> {
  let summary = "result[b..., p...] = operand with dimension dims[k] at indices[k][b...] and the others at p..., in order. C1: dims unique, in range, one an index tensor, at least one; C2: all indices have one type; C3: an index outside 0..size-1 is an error of the program (negative ones are not wrapped)";
  let arguments = (ins Prim_Tensor:$operand, Variadic<Prim_IndexTensor>:$indices, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand `[` $indices `]` `dims` $dims attr-dict `:` functional-type(operands, $result)";
}
def Prim_ScatterOp : Prim_Op<"scatter", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "operand, with element [dims[k] at indices[k][b...], others at p...] combined with updates[b..., p...] in row-major order of the updates. C1..C3 as gather; C4: the updates' type is that of the gather with the same indices";
  let arguments = (ins Prim_Tensor:$operand, Prim_Tensor:$updates, Variadic<Prim_IndexTensor>:$indices, DenseI64ArrayAttr:$dims, Prim_ScatterModeAttr:$mode);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$mode $operand `,` $updates `[` $indices `]` `dims` $dims attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
}
#endif
