// Passes that give the values of a host program their memory.
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
#endif
