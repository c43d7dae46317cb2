// The prim dialect: its name, element types, enums, and the classes its ops are made of.
#ifndef LAMINA_PRIM_BASE_TD
#define LAMINA_PRIM_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Prim_Dialect : Dialect {
  let name = "prim";
  let cppNamespace = "::lamina::prim";
  let summary = "Primitive tensor operations with value semantics.";
  let description = [{
    Every op works on ranked tensors whose shapes are logical: no strides, no
    aliasing, no implicit broadcast and no type promotion. A program is a
    `func.func` of these ops.

    **Sizes.** Each function has index symbols `s0, s1, ...`. A dimension
    written `?` in a type has a size that is an expression over them. Function
    arguments give theirs in the argument attribute `prim.sizes`, an affine map
    `()[s0, ...] -> (sizes of every dimension)`; ops whose result sizes do not
    follow from their operands carry a `sizes` attribute of the same form,
    printed as a list: `sizes [s0, 512]`. Static dimensions are constants in it.
    Two sizes are equal when their expressions are. The function attribute
    `prim.symbols` (an array of dictionaries with `name`, `min`, `max`) bounds
    each symbol; a symbol without an entry is at least 0.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

// ---- element types ----------------------------------------------------------

def Prim_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Prim_Int : AnyTypeOf<[I64, I32, I16, I8, UI8]>;
def Prim_IntOrBool : AnyTypeOf<[I64, I32, I16, I8, UI8, I1]>;
def Prim_Number : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8]>;
def Prim_Element : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1]>;

def Prim_FloatTensor : RankedTensorOf<[F64, F32, F16, BF16]>;
def Prim_IntTensor : RankedTensorOf<[I64, I32, I16, I8, UI8]>;
def Prim_IntOrBoolTensor : RankedTensorOf<[I64, I32, I16, I8, UI8, I1]>;
def Prim_NumberTensor : RankedTensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8]>;
def Prim_BoolTensor : RankedTensorOf<[I1]>;
def Prim_IndexTensor : RankedTensorOf<[I64]>;
def Prim_Tensor : RankedTensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1]>;

// ---- enums ------------------------------------------------------------------

class Prim_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::lamina::prim";
  let genSpecializedAttr = 0;
}
class Prim_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Prim_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}
def Prim_Comparison : Prim_Enum<"Comparison", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Prim_ComparisonAttr : Prim_EnumAttr<Prim_Comparison, "comparison">;

def Prim_Combiner : Prim_Enum<"Combiner", "associative combination of two elements", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>, I32EnumAttrCase<"max", 2>,
  I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"any", 4>, I32EnumAttrCase<"all", 5>]>;
def Prim_CombinerAttr : Prim_EnumAttr<Prim_Combiner, "combiner">;

def Prim_ScatterMode : Prim_Enum<"ScatterMode", "what a scatter does with an element", [
  I32EnumAttrCase<"assign", 0>, I32EnumAttrCase<"sum", 1>, I32EnumAttrCase<"prod", 2>,
  I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>]>;
def Prim_ScatterModeAttr : Prim_EnumAttr<Prim_ScatterMode, "scatter_mode">;

def Prim_Extremum : Prim_Enum<"Extremum", "largest or smallest", [
  I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"min", 1>]>;
def Prim_ExtremumAttr : Prim_EnumAttr<Prim_Extremum, "extremum">;

// ---- op classes -------------------------------------------------------------

class Prim_Op<string mnemonic, list<Trait> traits = []>
    : Op<Prim_Dialect, mnemonic, !listconcat([Pure], traits)>;

/// An op whose result type follows from its operands and attributes.
class Prim_InferredOp<string mnemonic, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)>;

/// Elementwise ops: every operand and the result have one shape.
class Prim_UnaryOp<string mnemonic, TypeConstraint type, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
class Prim_BinaryOp<string mnemonic, TypeConstraint type, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

#endif
