// Passes that turn a prim program into kernels and a host program.
#ifndef LAMINA_FUSION_PASSES_TD
#define LAMINA_FUSION_PASSES_TD
include "mlir/Pass/PassBase.td"

def FuseKernels : Pass<"lamina-fuse-kernels", "::mlir::ModuleOp"> {
  let summary = "outline the ops of each prim function into kernels, and launch them from what is left";
  let description = [{
    Every function of prim ops becomes a host function of `kernel.launch`es.
    Ops are visited in order; each joins the kernel of an operand when that is
    legal (the kernel keeps one iteration space, no cycle appears) and takes
    no longer than the kernels apart: what is saved is a launch and a walk over
    the values, what may be lost is programs, up to `min-parallelism` of them. Ops without a cost of their own (broadcast, transpose, reshape,
    slice, iota, constants) are copied into every kernel that reads them.

    Inside a kernel there is no reshape: dimensions are split into factors until
    all values agree, then factors that always go together are merged again.
    Kernels that are equal but for their locations are emitted once. A constant
    right operand of a contraction of less than 96 rows is copied into column
    panels by @init when `pack-widths` has a width that divides its columns; one of bf16 for a matrix
    unit into panels where two rows alternate.

    The cost is linear in the number of ops times the ops of a kernel.
  }];
  let options = [
    Option<"minParallelism", "min-parallelism", "int64_t", "8",
      "programs that keep all of the target busy; a kernel of fewer takes longer by as much">,
    Option<"sizeHint", "size-hint", "int64_t", "128", "size assumed for a dimension whose symbol has no upper bound">,
    ListOption<"packWidths", "pack-widths", "int64_t",
      "widths of the column panels into which constant right operands of contractions are copied once; none: no copies">,
    ListOption<"packTileWidths", "pack-tile-widths", "int64_t",
      "widths of the panels of bf16 constants for a matrix unit, where two rows alternate; none: as for other types">
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "distinct kernels">,
    Statistic<"numLaunches", "launches", "launches of them">
  ];
  let dependentDialects = ["::lamina::kernel::KernelDialect", "::lamina::prim::PrimDialect"];
}

def DeriveAttention : InterfacePass<"lamina-derive-attention", "::mlir::FunctionOpInterface"> {
  let summary = "divide after the product where a softmax is multiplied by a matrix";
  let description = [{
    Finds `softmax(x) v` by its algebra, whatever x is: a product whose left
    operand is `e / sum(e)`, `e = exp(x - max(x))` in f32, along the contracted
    dimension, perhaps rounded, perhaps guarded against rows that are masked as
    a whole. It becomes `(e v) / sum(e)`, in which both sums run over the same
    rows, so that `lamina-fuse-kernels` can put all of it, and the product that
    makes x, into one kernel that reads each row of v once. The maximum, the sum
    and the product are marked `kernel.online`: a running maximum may replace
    the maximum, if the sums made so far are scaled when it grows. Where the
    softmax is read elsewhere too, it is left alone.

    A row all of whose x are -inf gives what it gave: NaN, or the guard's value.
    Where v holds infinities or NaN at masked positions, they count, as before.
  }];
  let statistics = [Statistic<"numDerived", "derived", "products of a softmax rewritten">];
  let dependentDialects = ["::lamina::prim::PrimDialect"];
}

def SplitReductions : InterfacePass<"lamina-split-reductions", "::mlir::FunctionOpInterface"> {
  let summary = "reduce in two steps where one step would have too few programs";
  let description = [{
    Programs never communicate, so a reduction to few elements runs on few
    cores. Where a `prim.reduce` keeps so few elements that `min-parallelism`
    programs and another launch take less time, its outermost reduced dimension
    is left to a second reduction; a dimension too long for that is split first.
    The order of combination depends on the shape alone, never on the number
    of threads. f16 and bf16 stay f32 between the steps, so that they round once.
    With `product-tile`, a matrix product of few rows and columns is split along
    its longest contracted dimension in the same way, into at most half as many
    programs. Linear.
  }];
  let options = [
    Option<"minParallelism", "min-parallelism", "int64_t", "8", "programs that keep all of the target busy">,
    Option<"launchElements", "launch-elements", "int64_t", "16384", "elements that a program walks in the time that a launch costs">,
    Option<"productTile", "product-tile", "int64_t", "0", "rows and columns of a program of a matrix product; 0: such products are left whole">,
    Option<"sizeHint", "size-hint", "int64_t", "128", "size assumed for a dynamic dimension">
  ];
  let statistics = [Statistic<"numSplit", "split", "reductions split">];
  let dependentDialects = ["::lamina::prim::PrimDialect"];
}

def ParallelScatters : InterfacePass<"lamina-parallel-scatters", "::mlir::FunctionOpInterface"> {
  let summary = "make scatters of which many programs apply the updates, in any order";
  let description = [{
    Sums and extrema become scatters that are `in_place`, in a type that there are
    atomic operations of: f16 and bf16 are summed in f32, small integers in
    i32; the larger and smaller of floats are those of integers in the same order.
    Of assignments the last one counts: its number is what an `in_place` scatter
    finds as the largest, and the element is gathered from there. So all but sums
    of floats are what they would be in order, and those are left as they are if
    the scatter is `ordered`. Products and sums of booleans are left too, and what takes
    less time as one kernel that looks for the updates of each element. Linear.
  }];
  let options = [
    Option<"leastPositions", "least-positions", "int64_t", "8", "a scatter of fewer indices is left as it is">,
    Option<"leastWork", "least-work", "int64_t", "4194304",
      "elements times indices that one kernel walks in the time that the launches of more take">,
    Option<"sizeHint", "size-hint", "int64_t", "128", "size assumed for a dynamic dimension">
  ];
  let statistics = [Statistic<"numScatters", "scatters", "scatters rewritten">];
  let dependentDialects = ["::lamina::prim::PrimDialect"];
}

def HoistConstants : Pass<"lamina-hoist-constants", "::mlir::ModuleOp"> {
  let summary = "compute what depends on constants alone once, in @init";
  let description = [{
    Ops of @main that are made of literals, iotas and arguments with
    `prim.constant` move to a function @init when their results are no bigger
    than those arguments; or than 1 MiB, if a kernel of their own would have to
    make them. @init takes the constants that it reads and returns the values
    that @main still needs; they become arguments of @main with
    `prim.constant = "init.<i>"`. Constants that @main no longer reads are
    dropped from its arguments. Broadcasts, reshapes and the like are never
    moved on their own, since kernels read through them. Linear.
  }];
  let statistics = [Statistic<"numHoisted", "hoisted", "ops that moved to @init">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::lamina::prim::PrimDialect"];
}
#endif
