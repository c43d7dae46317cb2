// Passes over a host program and its kernels: the memory of its values, and the work of its launches.
#ifndef LAMINA_PLANNING_PASSES_TD
#define LAMINA_PLANNING_PASSES_TD
include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"lamina-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every launch its destinations: results of the program, or slots of one arena";
  let description = [{
    The results of a host function become its last arguments (their number is
    the attribute `kernel.results`), and it returns nothing. Every other output
    of a launch gets a `kernel.alloc`. A slot is used again after the last
    reader of its value, where its size is provably enough: equal expressions,
    or multiples of one. The attribute `kernel.arena` is the arena's size in
    bytes. Linear in launches times slots.
  }];
  let statistics = [
    Statistic<"numTemporaries", "temporaries", "values that live in the arena">,
    Statistic<"numSlots", "slots", "slots that hold them">
  ];
  let dependentDialects = ["::lamina::kernel::KernelDialect"];
}

def CountWork : InterfacePass<"lamina-count-work", "::mlir::FunctionOpInterface"> {
  let summary = "write what a launch of a kernel reads, writes and computes to the kernel's attribute kernel.work";
  let description = [{
    Works on a `kernel.func` of prim ops; other functions are left alone. The
    attribute is a dictionary of expressions over the kernel's symbols:

    * `elements`: for each argument a list of upper bounds of the elements of
      it that a launch touches, each once; the smallest is the one to take. An
      argument that is only gathered from or sliced has the number of elements
      that are read as a bound beside its size; one that overlaps itself (a
      stride of 0) has only its memory.
    * `products`: by element type of the operands, additions and
      multiplications of contractions and convolutions.
    * `operations`: one for each element of an elementwise result, and for each
      element that a reduction, scan, sort or scatter combines. What only moves
      elements counts nothing.

    These are operations of the program, not of its lowering: what a kernel
    computes twice counts once, and what a mask lets it skip counts too. A
    size that is not known is left out of `elements`, and an op with one
    counts as 0. Linear in the number of ops.
  }];
  let dependentDialects = ["::lamina::kernel::KernelDialect"];
}
#endif
