// Elementwise ops of prim: one row an op.
#ifndef LAMINA_PRIM_ELEMENTWISE_TD
#define LAMINA_PRIM_ELEMENTWISE_TD
include "dialects/Prim/PrimBase.td"

// ---- unary, on numbers --------------------------------------------------------
def Prim_NegOp   : Prim_UnaryOp<"neg", Prim_NumberTensor> { let summary = "-x; integers wrap around, the sign bit of a float is flipped"; let hasFolder = 1; }
def Prim_AbsOp   : Prim_UnaryOp<"abs", Prim_NumberTensor> { let summary = "|x|; integers wrap around"; }
def Prim_SignOp  : Prim_UnaryOp<"sign", Prim_NumberTensor> { let summary = "-1, 0 or 1; NaN gives 0 and -0.0 gives 0, as torch.sign does"; }
def Prim_NotOp   : Prim_UnaryOp<"not", Prim_IntOrBoolTensor> { let summary = "bitwise complement; on i1 logical not"; let hasFolder = 1; }

// ---- unary, on floats ---------------------------------------------------------
class Prim_FloatUnaryOp<string mnemonic, string formula> : Prim_UnaryOp<mnemonic, Prim_FloatTensor> { let summary = formula; }
def Prim_ExpOp   : Prim_FloatUnaryOp<"exp", "e^x">;
def Prim_Exp2Op  : Prim_FloatUnaryOp<"exp2", "2^x">;
def Prim_Expm1Op : Prim_FloatUnaryOp<"expm1", "e^x - 1">;
def Prim_LogOp   : Prim_FloatUnaryOp<"log", "natural logarithm">;
def Prim_Log2Op  : Prim_FloatUnaryOp<"log2", "logarithm to base 2">;
def Prim_Log10Op : Prim_FloatUnaryOp<"log10", "logarithm to base 10">;
def Prim_Log1pOp : Prim_FloatUnaryOp<"log1p", "log(1 + x)">;
def Prim_SqrtOp  : Prim_FloatUnaryOp<"sqrt", "square root, correctly rounded">;
def Prim_RsqrtOp : Prim_FloatUnaryOp<"rsqrt", "1 / sqrt(x)">;
def Prim_SinOp   : Prim_FloatUnaryOp<"sin", "sine">;
def Prim_CosOp   : Prim_FloatUnaryOp<"cos", "cosine">;
def Prim_TanOp   : Prim_FloatUnaryOp<"tan", "tangent">;
def Prim_AsinOp  : Prim_FloatUnaryOp<"asin", "inverse sine">;
def Prim_AcosOp  : Prim_FloatUnaryOp<"acos", "inverse cosine">;
def Prim_AtanOp  : Prim_FloatUnaryOp<"atan", "inverse tangent">;
def Prim_SinhOp  : Prim_FloatUnaryOp<"sinh", "hyperbolic sine">;
def Prim_CoshOp  : Prim_FloatUnaryOp<"cosh", "hyperbolic cosine">;
def Prim_TanhOp  : Prim_FloatUnaryOp<"tanh", "hyperbolic tangent">;
def Prim_AsinhOp : Prim_FloatUnaryOp<"asinh", "inverse hyperbolic sine">;
def Prim_AcoshOp : Prim_FloatUnaryOp<"acosh", "inverse hyperbolic cosine">;
def Prim_AtanhOp : Prim_FloatUnaryOp<"atanh", "inverse hyperbolic tangent">;
def Prim_ErfOp   : Prim_FloatUnaryOp<"erf", "error function">;
def Prim_ErfcOp  : Prim_FloatUnaryOp<"erfc", "complementary error function, 1 - erf(x) without cancellation">;
def Prim_CeilOp  : Prim_FloatUnaryOp<"ceil", "least integer not below x">;
def Prim_FloorOp : Prim_FloatUnaryOp<"floor", "greatest integer not above x">;
def Prim_RoundOp : Prim_FloatUnaryOp<"round", "nearest integer, ties to even">;
def Prim_TruncOp : Prim_FloatUnaryOp<"trunc", "integer part, towards zero">;

// ---- binary -------------------------------------------------------------------
def Prim_AddOp   : Prim_BinaryOp<"add", Prim_NumberTensor, [Commutative]> { let summary = "x + y; integers wrap around"; let hasFolder = 1; }
def Prim_SubOp   : Prim_BinaryOp<"sub", Prim_NumberTensor> { let summary = "x - y; integers wrap around"; let hasFolder = 1; }
def Prim_MulOp   : Prim_BinaryOp<"mul", Prim_NumberTensor, [Commutative]> { let summary = "x * y; integers wrap around"; let hasFolder = 1; }
def Prim_DivOp   : Prim_BinaryOp<"div", Prim_NumberTensor> { let summary = "x / y; integers truncate towards zero, and a zero divisor is an error of the program"; let hasFolder = 1; }
def Prim_RemOp   : Prim_BinaryOp<"rem", Prim_NumberTensor> { let summary = "x - trunc(x / y) * y, with the sign of x (C's fmod)"; }
def Prim_PowOp   : Prim_BinaryOp<"pow", Prim_NumberTensor> { let summary = "x^y (C's pow); integers by repeated squaring, wrapping; a negative integer exponent gives 0, but 1 and -1 keep their powers"; }
def Prim_Atan2Op : Prim_BinaryOp<"atan2", Prim_FloatTensor> { let summary = "angle of the point (y, x) = (lhs, rhs)"; }
def Prim_MaxOp   : Prim_BinaryOp<"max", Prim_Tensor, [Commutative]> { let summary = "the larger; NaN if either is NaN"; }
def Prim_MinOp   : Prim_BinaryOp<"min", Prim_Tensor, [Commutative]> { let summary = "the smaller; NaN if either is NaN"; }
def Prim_AndOp   : Prim_BinaryOp<"and", Prim_IntOrBoolTensor, [Commutative]> { let summary = "bitwise and"; let hasFolder = 1; }
def Prim_OrOp    : Prim_BinaryOp<"or", Prim_IntOrBoolTensor, [Commutative]> { let summary = "bitwise or"; let hasFolder = 1; }
def Prim_XorOp   : Prim_BinaryOp<"xor", Prim_IntOrBoolTensor, [Commutative]> { let summary = "bitwise exclusive or"; }
def Prim_ShlOp   : Prim_BinaryOp<"shl", Prim_IntTensor> { let summary = "x * 2^y, wrapping; 0 when y is negative or not below the bit width"; }
def Prim_ShrOp   : Prim_BinaryOp<"shr", Prim_IntTensor> { let summary = "floor(x / 2^y), arithmetic on signed and logical on unsigned types; a y that is negative or not below the bit width shifts by width - 1 (signed) or gives 0 (unsigned)"; }

// ---- others -------------------------------------------------------------------
def Prim_CompareOp : Prim_InferredOp<"compare", [Elementwise, SameTypeOperands, SameOperandsAndResultShape]> {
  let summary = "lhs comparison rhs, of each element";
  let description = [{
    A comparison with NaN is false, except ne, which is true. false is less than true.

    **Constraints.** C1: the operands have one type.

    **Element types.** all; the result i1.

    ```mlir
    func.func @compare(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
      %0 = prim.compare <lt> %x, %y : tensor<4xf32>
      return %0 : tensor<4xi1>
    }
    ```
  }];
  let arguments = (ins Prim_ComparisonAttr:$comparison, Prim_Tensor:$lhs, Prim_Tensor:$rhs);
  let results = (outs Prim_BoolTensor:$result);
  let assemblyFormat = "$comparison $lhs `,` $rhs attr-dict `:` type($lhs)";
  let hasFolder = 1;
}
def Prim_SelectOp : Prim_Op<"select", [Elementwise, SameOperandsAndResultShape, AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "on_true where the predicate holds, else on_false";
  let description = [{
    result[i] = predicate[i] ? on_true[i] : on_false[i].

    **Constraints.** C1: on_true, on_false and the result have one type, the predicate its shape.

    **Element types.** all; the predicate i1.

    ```mlir
    func.func @select(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = prim.select %p, %x, %y : tensor<4xi1>, tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Prim_BoolTensor:$predicate, Prim_Tensor:$on_true, Prim_Tensor:$on_false);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$predicate `,` $on_true `,` $on_false attr-dict `:` type($predicate) `,` type($result)";
  let hasFolder = 1;
}
def Prim_ConvertOp : Prim_Op<"convert", [Elementwise, SameOperandsAndResultShape]> {
  let summary = "element type conversion";
  let description = [{
    Floats round to nearest, ties to even; f16 and bf16 are made from an f32. Float to
    integer truncates towards zero, and out of range any value may come. Integers keep
    their low bits. To i1 is x != 0, and NaN gives true.

    **Constraints.** C1: operand and result have one shape.

    **Element types.** all.

    ```mlir
    func.func @convert(%x: tensor<4xf32>) -> tensor<4xbf16> {
      %0 = prim.convert %x : tensor<4xf32> to tensor<4xbf16>
      return %0 : tensor<4xbf16>
    }
    ```
  }];
  let arguments = (ins Prim_Tensor:$operand);
  let results = (outs Prim_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}
def Prim_BitcastOp : Prim_Op<"bitcast", [Elementwise, SameOperandsAndResultShape]> {
  let summary = "the same bits as another element type";
  let description = [{
    The bits of each element, read as another type.

    **Constraints.** C1: the element types have one width.

    **Element types.** f64, f32, f16, bf16, i64, i32, i16, i8, ui8.

    ```mlir
    func.func @bitcast(%x: tensor<4xf32>) -> tensor<4xi32> {
      %0 = prim.bitcast %x : tensor<4xf32> to tensor<4xi32>
      return %0 : tensor<4xi32>
    }
    ```
  }];
  let arguments = (ins Prim_NumberTensor:$operand);
  let results = (outs Prim_NumberTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
#endif
