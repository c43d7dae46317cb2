// Passes that take tiled kernels and planned hosts down to functions on memory, for the CPU.
#ifndef LAMINA_TRANSFORMS_LOWERING_TD
#define LAMINA_TRANSFORMS_LOWERING_TD
include "mlir/Pass/PassBase.td"

def BufferizeKernels : Pass<"lamina-bufferize-kernels", "mlir::ModuleOp"> {
  let summary = "kernels on tensors become kernels on memrefs";
  let description = [{
    An argument becomes a memref: contiguous, or with the layout of its
    `kernel.strides`. Inputs are never written; the value that a kernel returns
    for an output is written to that output's memory, in place where upstream's
    one-shot analysis can prove it. Temporaries are `memref.alloc`s at the place
    where they are needed. The copies that are left are `linalg.generic`s, so
    that they are vectorised like everything else.

    Host functions are not touched. The analysis is quadratic in the number of
    tensor values that may alias within one kernel.
  }];
  let statistics = [
    Statistic<"numAllocs", "allocs", "temporary buffers">,
    Statistic<"numCopies", "copies", "copies between buffers that could not be avoided">,
  ];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::bufferization::BufferizationDialect", "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect",
    "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect"];
}

def LowerGrid : Pass<"lamina-lower-grid", "mlir::ModuleOp"> {
  let summary = "kernels become functions that run a range of their programs";
  let description = [{
    A `kernel.func` on memrefs becomes
    `func.func @k(%block: !llvm.ptr, %begin: index, %end: index)`. The block
    holds the pointers of the arguments, then the values of the index symbols,
    eight bytes each. The `scf.forall` over the grid becomes one `scf.for` over
    [begin, end) with the program's ids computed from its number, the last
    dimension fastest; a kernel without one runs its body once.

    Temporaries move out of the loop, each with room for the largest size that
    it may have: on the stack if all of them together have a bound of at most
    `max-stack` bytes, else in one block of `lamina_scratch`.

    1. There is at most one `scf.forall` at the top level, and beside it nothing
       that writes memory.
    2. The size of a temporary has a constant bound, or depends on symbols only.
    3. No temporary lives from one iteration of a sequential loop to the next.
  }];
  let options = [Option<"maxStack", "max-stack", "int64_t", "65536", "bytes of temporaries that may lie on the stack">];
  let statistics = [
    Statistic<"numScratch", "scratch", "kernels whose temporaries are too large for the stack">,
  ];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect"];
}

def LowerHost : Pass<"lamina-lower-host", "mlir::ModuleOp"> {
  let summary = "host functions become functions on pointers that launch kernels";
  let description = [{
    A planned host function becomes
    `func.func @main(%args: !llvm.ptr, %symbols: !llvm.ptr, %arena: !llvm.ptr)`:
    the pointers of its arguments, the values of its index symbols, and the
    memory of its `kernel.alloc`s. The launches are a table of integers that
    `lamina_run` goes through, so that a long program costs data and no code;
    the function computes the sizes that are no constants, and names the
    kernels.

    1. Every launch has its outputs as `outs`.
    2. Kernels are functions already (`lamina-lower-grid`).
  }];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect"];
}

def MaskAsIntegers : Pass<"lamina-mask-as-integers"> {
  let summary = "masked loads and stores of 16-bit floats move integers";
  let description = [{
    `llvm.intr.masked.load` and `llvm.intr.masked.store` of vectors of bf16 or
    f16 become ones of i16 with a bitcast: LLVM cannot legalise all of the
    former, and the bits are the same. Linear.
  }];
  // All but the first are for lamina-cpu-to-llvm, of which this is a part: its convert-to-llvm names dialects, which must
  // be loaded.
  let dependentDialects = ["mlir::LLVM::LLVMDialect", "mlir::amx::AMXDialect", "mlir::arith::ArithDialect",
    "mlir::cf::ControlFlowDialect", "mlir::index::IndexDialect", "mlir::memref::MemRefDialect"];
}

def ExpandBools : Pass<"lamina-expand-bools"> {
  let summary = "elements of i1 in memory are read and written as bytes";
  let description = [{
    `memref.load` and `memref.store` of an i1 become ones of an i8, where 0 is
    false: a memref of i1 holds a byte an element, and upstream's lowering takes
    no element of less than a byte. Accesses of vectors are left alone;
    `lamina-vectorize-loops` makes them as bytes. Linear.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def ExpandBF16 : Pass<"lamina-expand-bf16"> {
  let summary = "conversions between f32 and bf16 become integer arithmetic";
  let description = [{
    `arith.extf` from bf16 is a shift, and `arith.truncf` to bf16 rounds to the
    nearest, ties to even, and keeps denormals, as PyTorch does. The instruction
    that LLVM would take (`vcvtneps2bf16`) reads denormals as zero, and without
    it LLVM calls a function for each element. Linear.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::vector::VectorDialect"];
}
#endif
