// Reductions, scans, sorting and contractions of prim.
#ifndef LAMINA_PRIM_REDUCTION_TD
#define LAMINA_PRIM_REDUCTION_TD
include "dialects/Prim/PrimBase.td"

def Prim_ReduceOp : Prim_InferredOp<"reduce"> {
  let summary = "combination over dims, which are dropped; nothing to combine gives the identity (0, 1, lowest, highest, false, true). C1: dims unique, in range; C2: any and all take i1, sum and prod take numbers. Order within a reduction is free; f16 and bf16 accumulate in f32, max and min propagate NaN";
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, DenseI64ArrayAttr:$dims);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}
def Prim_ArgReduceOp : Prim_InferredOp<"arg_reduce"> {
  let summary = "i64 index along dim of the first largest or smallest element; NaN counts as both. C1: 0 <= dim < rank; C2: the size of dim is not 0";
  let arguments = (ins Prim_Tensor:$operand, Prim_ExtremumAttr:$extremum, I64Attr:$dim);
  let results = (outs Prim_IndexTensor:$result);
  let assemblyFormat = "$extremum $operand `dim` $dim attr-dict `:` type($operand) `to` type($result)";
}
def Prim_ScanOp : Prim_Op<"scan", [SameOperandsAndResultType]> {
  let summary = "inclusive running combination along dim. C1: 0 <= dim < rank; C2: as reduce";
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, I64Attr:$dim);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_SortOp : Prim_InferredOp<"sort"> {
  let summary = "stable sort along dim: sorted values and the i64 index that each had; NaN counts as the largest. C1: 0 <= dim < rank";
  let arguments = (ins Prim_Tensor:$operand, I64Attr:$dim, BoolAttr:$descending);
  let results = (outs Prim_Tensor:$values, Prim_IndexTensor:$indices);
  let assemblyFormat = "$operand `dim` $dim `descending` $descending attr-dict `:` type($operand)";
}
def Prim_ReduceWindowOp : Prim_Op<"reduce_window", [AllElementTypesMatch<["operand", "result"]>]> {
  let summary = "combination over windows: window w starts at w * strides - low and takes every dilations-th element, window_sizes of them; elements outside count as the identity. C1: all lists have one entry a dimension; C2: result size = (low + size + high - (window - 1) * dilation - 1) floordiv stride + 1";
  let arguments = (ins Prim_Tensor:$operand, Prim_CombinerAttr:$combiner, DenseI64ArrayAttr:$window_sizes, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$combiner $operand `window` $window_sizes `strides` $strides `dilations` $dilations `low` $low `high` $high attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def Prim_DotGeneralOp : Prim_Op<"dot_general"> {
  let summary = "result[batch, lhs free, rhs free] = sum over the contracted dimensions of lhs * rhs. C1: batch and contracting dims unique, in range, disjoint, pairwise of equal size; C2: operand element types equal; C3: result dims are batch, then lhs free, then rhs free, in order; C4: result element type = accumulation type: the operands', or f32 for f16 and bf16 operands";
  let arguments = (ins Prim_NumberTensor:$lhs, Prim_NumberTensor:$rhs, DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Prim_NumberTensor:$result);
  let assemblyFormat = [{ $lhs `,` $rhs `batch` $lhs_batch `x` $rhs_batch `contract` $lhs_contract `x` $rhs_contract attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result) }];
  let hasVerifier = 1;
}
def Prim_ConvolutionOp : Prim_Op<"convolution"> {
  let summary = "result[n, o, x...] = sum over i, k... of padded lhs[n, i, x * strides + k * dilations] * rhs[o, i, k...], the input dilated first by lhs_dilations (zeros between elements), groups of channels apart; lhs is N C spatial, rhs O C/groups spatial. C1: 1 to 3 spatial dims, lists of that length; C2: O and C divisible by groups; C3: low and high may be negative (crop); C4: result element type as dot_general";
  let arguments = (ins Prim_FloatTensor:$lhs, Prim_FloatTensor:$rhs, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    DenseI64ArrayAttr:$lhs_dilations, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Prim_FloatTensor:$result);
  let assemblyFormat = [{ $lhs `,` $rhs `strides` $strides `low` $low `high` $high `lhs_dilations` $lhs_dilations `dilations` $dilations
    `groups` $groups attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result) }];
  let hasVerifier = 1;
}
#endif
