// The part of Triton's dialect that Lamina emits: names, attributes and semantics are Triton's, of versions 3.6 to 3.9.
#ifndef LAMINA_TRITON_OPS_TD
#define LAMINA_TRITON_OPS_TD
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TT_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::lamina::tt";
  let summary = "A mirror of the Triton ops that Lamina emits.";
  let description = [{
    One `tt.func` is one kernel; it is run by each program of a grid of one dimension. Values are scalars or blocks:
    tensors whose sizes are powers of two. In generic form the text is what Triton itself parses.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasOperationAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def TT_Ptr : TypeDef<TT_Dialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "the address of an element";
  let parameters = (ins "::mlir::Type":$pointeeType);
  let assemblyFormat = "`<` $pointeeType `>`";
  let genVerifyDecl = 1;
}

def TT_TensorDesc : TypeDef<TT_Dialect, "TensorDesc"> {
  let mnemonic = "tensordesc";
  let summary = "a tensor in memory, of which blocks of a shape are read: `!tt.tensordesc<128x64xf16>`";
  let description = "Versions of Triton before 3.8 spell it otherwise; lamina/targets/triton_versions.py has both.";
  let parameters = (ins "::mlir::RankedTensorType":$block);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

/// Sizes of blocks are powers of two, and a block has at most 2^20 elements.
def TT_Block : Type<And<[IsTensorTypePred, HasStaticShapePred,
                         CPred<"::lamina::tt::isBlockShape(::llvm::cast<::mlir::ShapedType>($_self).getShape())">]>,
                    "block, a tensor whose sizes are powers of two">;
class BlockOf<Type element> : Type<And<[TT_Block.predicate, TensorOf<[element]>.predicate]>, "block of " # element.summary>;
class BlockOrScalar<Type element> : AnyTypeOf<[element, BlockOf<element>]>;
def TT_Number : AnyTypeOf<[AnyFloat, AnySignlessInteger]>;
def TT_Any : AnyTypeOf<[TT_Number, TT_Ptr, TT_Block]>;
def TT_Integers : AnyTypeOf<[AnySignlessInteger, TT_Block]>;

class TT_Op<string mnemonic, list<Trait> traits = []> : Op<TT_Dialect, mnemonic, traits>;

def TT_FuncOp : TT_Op<"func", [AffineScope, AutomaticAllocationScope, IsolatedFromAbove, FunctionOpInterface]> {
  let summary = "a kernel";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility, OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TT_ReturnOp : TT_Op<"return", [Pure, HasParent<"FuncOp">, Terminator, ReturnLike]> {
  let summary = "ends a kernel";
  let arguments = (ins Variadic<AnyType>:$srcs);
  let assemblyFormat = "attr-dict ($srcs^ `:` type($srcs))?";
}

def TT_GetProgramIdOp : TT_Op<"get_program_id", [Pure]> {
  let summary = "the program's position in grid dimension `axis`";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def TT_MakeRangeOp : TT_Op<"make_range", [Pure]> {
  let summary = "start, start + 1, ..., end - 1";
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs BlockOf<I32>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TT_SplatOp : TT_Op<"splat", [Pure]> {
  let summary = "a block whose elements are all the scalar `src`";
  let arguments = (ins AnyTypeOf<[TT_Number, TT_Ptr]>:$src);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_ExpandDimsOp : TT_Op<"expand_dims", [Pure]> {
  let summary = "the block with a dimension of size 1 at `axis`";
  let arguments = (ins TT_Block:$src, I32Attr:$axis);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def TT_BroadcastOp : TT_Op<"broadcast", [Pure]> {
  let summary = "the block with its dimensions of size 1 repeated";
  let arguments = (ins TT_Block:$src);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def TT_TransOp : TT_Op<"trans", [Pure]> {
  let summary = "dimension i of the result is dimension order[i] of the block";
  let arguments = (ins TT_Block:$src, DenseI32ArrayAttr:$order);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def TT_ReshapeOp : TT_Op<"reshape", [Pure]> {
  let summary = "the elements, in row-major order, as a block of another shape";
  let arguments = (ins TT_Block:$src);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def TT_BitcastOp : TT_Op<"bitcast", [Pure]> {
  let summary = "the same bits as another type";
  let arguments = (ins TT_Any:$src);
  let results = (outs TT_Any:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
}

def TT_AddPtrOp : TT_Op<"addptr", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "the address `offset` elements on";
  let arguments = (ins BlockOrScalar<TT_Ptr>:$ptr, TT_Integers:$offset);
  let results = (outs BlockOrScalar<TT_Ptr>:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)";
  let hasVerifier = 1;
}

def TT_LoadOp : TT_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "elements at `ptr`; where `mask` is false nothing is read, and the value is `other`, or any if there is none";
  let arguments = (ins Arg<BlockOrScalar<TT_Ptr>, "", [MemRead]>:$ptr, Optional<TT_Integers>:$mask, Optional<AnyType>:$other);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` custom<Load>(type($ptr), type($mask), type($other), type($result), ref($mask), ref($other))";
  let hasVerifier = 1;
}

def TT_MakeTensorDescriptorOp : TT_Op<"make_tensor_descriptor", [Pure, SameVariadicOperandSize]> {
  let summary = "a tensor of this shape at `base`; strides are in elements, and the last is 1";
  let description = "The base and all strides but the last are multiples of 16 bytes; what is outside of the shape reads as 0.";
  let arguments = (ins TT_Ptr:$base, Variadic<I32>:$shape, Variadic<I64>:$strides);
  let results = (outs TT_TensorDesc:$result);
  let assemblyFormat = "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` qualified(type($base)) `,` qualified(type($result))";
  let hasVerifier = 1;
}

def TT_DescriptorLoadOp : TT_Op<"descriptor_load"> {
  let summary = "the block of the tensor that starts at these indices";
  let arguments = (ins Arg<TT_TensorDesc, "", [MemRead]>:$desc, Variadic<I32>:$indices);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$desc `[` $indices `]` attr-dict `:` qualified(type($desc)) `->` type($result)";
  let hasVerifier = 1;
}

def TT_StoreOp : TT_Op<"store"> {
  let summary = "writes `value` to `ptr` where `mask` is true";
  let arguments = (ins Arg<BlockOrScalar<TT_Ptr>, "", [MemWrite]>:$ptr, AnyType:$value, Optional<TT_Integers>:$mask);
  let assemblyFormat = "$ptr `,` $value (`,` $mask^)? attr-dict `:` custom<Store>(type($ptr), type($value), type($mask), ref($mask))";
  let hasVerifier = 1;
}

def TT_AtomicRMWOp : TT_Op<"atomic_rmw", [AllTypesMatch<["val", "result"]>]> {
  let summary = "combines `val` with the elements at `ptr`, one after the other; gives what they were";
  let description = "Numbers of operations, orders of memory and scopes are Triton's: of the first 4 is add, 5 fadd, 6 max, 7 min; order 1 is relaxed, scope 1 the GPU.";
  let arguments = (ins Arg<BlockOrScalar<TT_Ptr>, "", [MemRead, MemWrite]>:$ptr, AnyType:$val, Optional<TT_Integers>:$mask,
    I32Attr:$atomic_rmw_op, I32Attr:$sem, I32Attr:$scope);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$ptr `,` $val (`,` $mask^)? attr-dict `:` custom<Store>(type($ptr), type($val), type($mask), ref($mask))";
  let hasVerifier = 1;
}

def TT_ReduceOp : TT_Op<"reduce", [Pure, SameVariadicOperandSize, SingleBlock]> {
  let summary = "combines the elements along `axis` in any order; the region takes two of each source and returns one of each";
  let arguments = (ins Variadic<TT_Block>:$srcs, I32Attr:$axis);
  let results = (outs Variadic<AnyType>:$result);
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
}

def TT_ReduceReturnOp : TT_Op<"reduce.return", [Pure, HasParent<"ReduceOp">, Terminator, ReturnLike]> {
  let summary = "the combination";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def TT_ScanOp : TT_Op<"scan", [Pure, SameVariadicOperandSize, SingleBlock]> {
  let summary = "running combinations along `axis`, of which each element's has that element; the region is as in `tt.reduce`";
  let arguments = (ins Variadic<TT_Block>:$srcs, I32Attr:$axis, BoolAttr:$reverse);
  let results = (outs Variadic<TT_Block>:$result);
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
}

def TT_ScanReturnOp : TT_Op<"scan.return", [Pure, HasParent<"ScanOp">, Terminator, ReturnLike]> {
  let summary = "the combination";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def TT_DotOp : TT_Op<"dot", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "a @ b + c";
  let description = "The products are accumulated in the type of `c`; without `inputPrecision` f32 operands are not rounded.";
  let arguments = (ins TT_Block:$a, TT_Block:$b, TT_Block:$c);
  let results = (outs TT_Block:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `*` type($b) `->` type($result)";
  let hasVerifier = 1;
}

class TT_Precise<string mnemonic, dag ins> : TT_Op<mnemonic, [Pure, SameOperandsAndResultType, Elementwise]> {
  let arguments = ins;
  let results = (outs BlockOrScalar<F32>:$result);
}
def TT_PreciseDivFOp : TT_Precise<"precise_divf", (ins BlockOrScalar<F32>:$x, BlockOrScalar<F32>:$y)> {
  let summary = "the quotient, rounded as IEEE 754 says";
  let assemblyFormat = "$x `,` $y attr-dict `:` type($result)";
}
def TT_PreciseSqrtOp : TT_Precise<"precise_sqrt", (ins BlockOrScalar<F32>:$x)> {
  let summary = "the square root, rounded as IEEE 754 says";
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def TT_ExternElementwiseOp : TT_Op<"extern_elementwise", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let summary = "a function of a device library on each element, by default of libdevice";
  let arguments = (ins Variadic<AnyType>:$srcs, StrAttr:$libname, StrAttr:$libpath, StrAttr:$symbol, BoolAttr:$pure);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$symbol `(` $srcs `)` attr-dict `:` functional-type($srcs, $result)";
}
#endif
