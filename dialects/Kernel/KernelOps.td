// The kernel dialect: kernels, and the host program that launches them.
#ifndef LAMINA_KERNEL_OPS_TD
#define LAMINA_KERNEL_OPS_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::lamina::kernel";
  let summary = "Kernels, launches of them, and the memory between them.";
  let description = [{
    A `kernel.func` is one unit of device code. A host `func.func` is a straight
    line of `kernel.launch`, `kernel.view` and `kernel.alloc`. Sizes are
    expressions over index symbols, as in `prim`; a kernel has symbols of its
    own, and a launch says what they are in terms of the host's.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
}

def Kernel_Atomic : I32EnumAttr<"Atomic", "what an atomic operation does with a number", [
  I32EnumAttrCase<"addi", 0>, I32EnumAttrCase<"addf", 1>, I32EnumAttrCase<"maxs", 2>, I32EnumAttrCase<"mins", 3>]> {
  let cppNamespace = "::lamina::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_AtomicAttr : EnumAttr<Kernel_Dialect, Kernel_Atomic, "atomic"> {
  let assemblyFormat = "`<` $value `>`";
}

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

def Kernel_FuncOp : Kernel_Op<"func", [AffineScope, AutomaticAllocationScope, IsolatedFromAbove, FunctionOpInterface]> {
  let summary = "a kernel in destination-passing style: arguments are inputs, then `outs` outputs";
  let description = [{
    Arguments are ranked tensors, then memrefs; the body is one block. Argument
    attributes: `prim.sizes` (required where the type has ?),
    `kernel.strides` (an affine map like it; absent means row-major
    contiguous). After tiling the attribute `kernel.grid` holds the number of
    programs in each grid dimension as an affine map over the symbols. With
    `kernel.in_place = array<i64: ...>` an output is the memory of the input of
    that number, changed; -1 stands for memory of its own.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, I64Attr:$outs,
    OptionalAttr<StrAttr>:$sym_visibility, OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "int64_t":$outs)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    int64_t getNumIns() { return getNumArguments() - getOuts(); }
    /// Number of symbols that the sizes of the arguments and the body use.
    unsigned getNumSymbols();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Kernel_ReturnOp : Kernel_Op<"return", [Pure, HasParent<"FuncOp">, Terminator, ReturnLike]> {
  let summary = "ends a kernel; operand i is the value of output i";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Kernel_SymbolOp : Kernel_Op<"symbol", [Pure]> {
  let summary = "the value of the kernel's index symbol `number` in this launch";
  let arguments = (ins I64Attr:$number);
  let results = (outs Index:$result);
  let assemblyFormat = "$number attr-dict";
  let hasVerifier = 1;
}

def Kernel_ScatterOp : Kernel_Op<"scatter", [Pure, AllTypesMatch<["dest", "result"]>]> {
  let summary = "dest with updates combined into it by atomic operations";
  let description = [{
    The updates are numbered in row-major order; the one at b..., p... is combined with the element of dest whose
    dimension dims[k] is at indices[k][b...] and whose other dimensions are at p...; nothing is where an index is
    outside. After tiling, program i of the kernel takes `elements` updates from i * `elements` on. `sizes` are those of
    the updates.
  }];
  let arguments = (ins AnyRankedTensor:$updates, Variadic<AnyRankedTensor>:$indices, AnyRankedTensor:$dest,
    Kernel_AtomicAttr:$kind, DenseI64ArrayAttr:$dims, AffineMapAttr:$sizes, OptionalAttr<I64Attr>:$elements);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{ $kind $updates `[` $indices `]` `into` $dest `dims` $dims `sizes` custom<Exprs>($sizes)
    (`elements` $elements^)? attr-dict `:` functional-type(operands, $result) }];
  let hasVerifier = 1;
}

def Kernel_LaunchOp : Kernel_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel: `[exprs]` are the values of its symbols, ins its inputs, outs (once memory is planned) its destinations; the results are the outputs";
  let arguments = (ins FlatSymbolRefAttr:$kernel, AffineMapAttr:$symbols, Variadic<AnyType>:$ins, Variadic<AnyType>:$outs);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{ $kernel custom<Exprs>($symbols) (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $outs^ `:` type($outs) `)`)?
    attr-dict (`->` type($results)^)? }];
  let hasVerifier = 1;
}

def Kernel_ViewOp : Kernel_Op<"view", [Pure]> {
  let summary = "another tensor over the operand's memory: element i is at offset + sum(i * strides), counted in elements from the start of the operand";
  let arguments = (ins AnyRankedTensor:$operand, AffineMapAttr:$offset, AffineMapAttr:$sizes, AffineMapAttr:$strides);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `offset` custom<Exprs>($offset) `sizes` custom<Exprs>($sizes) `strides` custom<Exprs>($strides) attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}

def Kernel_AllocOp : Kernel_Op<"alloc"> {
  let summary = "temporary memory: `bytes` bytes at `offset` of the arena; slots with one number share memory and never live at once";
  let arguments = (ins I64Attr:$slot, AffineMapAttr:$offset, AffineMapAttr:$bytes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`slot` $slot `offset` custom<Exprs>($offset) `bytes` custom<Exprs>($bytes) attr-dict `:` type($result)";
  let hasVerifier = 1;
}
#endif
