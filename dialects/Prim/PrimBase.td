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
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

// ---- element types ----------------------------------------------------------

def Prim_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Prim_Int : AnyTypeOf<[I64, I32, I16, I8, UI8]>;
def Prim_IntOrBool : AnyTypeOf<[I64, I32, I16, I8, UI8, I1]>;
def Prim_Number : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8]>;
def Prim_Element : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1]>;

/// A ranked tensor of one of these types; `example` is the one that the examples in the documentation use.
class Prim_TensorOf<list<Type> types, string names, string example> : RankedTensorOf<types> {
  string elementTypes = names;
  string exampleElement = example;
}
def Prim_FloatTensor : Prim_TensorOf<[F64, F32, F16, BF16], "f64, f32, f16, bf16", "f32">;
def Prim_IntTensor : Prim_TensorOf<[I64, I32, I16, I8, UI8], "i64, i32, i16, i8, ui8", "i32">;
def Prim_IntOrBoolTensor : Prim_TensorOf<[I64, I32, I16, I8, UI8, I1], "i64, i32, i16, i8, ui8, i1", "i32">;
def Prim_NumberTensor : Prim_TensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8],
                                      "f64, f32, f16, bf16, i64, i32, i16, i8, ui8", "f32">;
def Prim_BoolTensor : Prim_TensorOf<[I1], "i1", "i1">;
def Prim_IndexTensor : Prim_TensorOf<[I64], "i64", "i64">;
def Prim_Tensor : Prim_TensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1],
                                "f64, f32, f16, bf16, i64, i32, i16, i8, ui8, i1", "f32">;

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

/// An op whose result type follows from its operands and attributes; a `?` may stand for a static size or the reverse.
class Prim_InferredOp<string mnemonic, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::lamina::prim::areCompatibleTypes(lhs, rhs);
    }
  }];
}

/// Elementwise ops: every operand and the result have one shape. `summary` is the formula of one element.
class Prim_UnaryOp<string mnemonic, Prim_TensorOf type, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let description = !strconcat([{
    Each element of the result, for x the element of the operand: }], summary, [{.

    **Constraints.** C1: operand and result have one type.

    **Element types.** }], type.elementTypes, [{

    ```mlir
    func.func @}], mnemonic, [{(%x: tensor<4x8x}], type.exampleElement, [{>) -> tensor<4x8x}], type.exampleElement, [{> {
      %0 = prim.}], mnemonic, [{ %x : tensor<4x8x}], type.exampleElement, [{>
      return %0 : tensor<4x8x}], type.exampleElement, [{>
    }
    ```
  }]);
}
class Prim_BinaryOp<string mnemonic, Prim_TensorOf type, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat([Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let description = !strconcat([{
    Each element of the result, for x and y the elements of lhs and rhs: }], summary, [{.

    **Constraints.** C1: operands and result have one type.

    **Element types.** }], type.elementTypes, [{

    ```mlir
    func.func @}], mnemonic, [{(%x: tensor<4x8x}], type.exampleElement, [{>, %y: tensor<4x8x}], type.exampleElement,
    [{>) -> tensor<4x8x}], type.exampleElement, [{> {
      %0 = prim.}], mnemonic, [{ %x, %y : tensor<4x8x}], type.exampleElement, [{>
      return %0 : tensor<4x8x}], type.exampleElement, [{>
    }
    ```
  }]);
}

#endif
