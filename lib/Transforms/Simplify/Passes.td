// Passes that simplify programs of prim ops before fusion.
#ifndef LAMINA_SIMPLIFY_PASSES_TD
#define LAMINA_SIMPLIFY_PASSES_TD
include "mlir/Pass/PassBase.td"

def SimplifyReshapes : InterfacePass<"lamina-simplify-reshapes", "::mlir::FunctionOpInterface"> {
  let summary = "cancel reshapes and transposes across elementwise ops and contractions";
  let description = [{
    Elementwise ops and the free and batch dimensions of `prim.dot_general` are
    given the finest shape around them: a reshape that splits dimensions moves
    up (also through `prim.concatenate`, where its dimension stays whole), one that
    merges dimensions moves down, and the two vanish where they meet. Transposes move down through elementwise ops whose operands are all
    transposed alike, constants or broadcasts, and into the dimension numbers
    of `prim.dot_general` where the order of its result allows.

    A reshape that neither merges nor splits whole dimensions stays, and so
    does one whose sizes have no expression over the function's symbols. No
    arithmetic is repeated: an op with several users is left where it is when
    the rewrite would need it in both shapes. Linear in the program's size
    times the length of the chains that reshapes move along.

    ```mlir
    func.func @linear(%x: tensor<2x8x16xf32>, %w: tensor<16x4xf32>) -> tensor<2x8x4xf32> {
      %0 = prim.reshape %x : tensor<2x8x16xf32> to tensor<16x16xf32>
      %1 = prim.dot_general %0, %w batch [] x [] contract [1] x [0] : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
      %2 = prim.reshape %1 : tensor<16x4xf32> to tensor<2x8x4xf32>
      return %2 : tensor<2x8x4xf32>
    }
    ```
    becomes one `prim.dot_general` of `%x` and `%w`.
  }];
  let dependentDialects = ["::lamina::prim::PrimDialect"];
  let statistics = [
    Statistic<"numReshapes", "reshapes-moved", "reshapes moved or cancelled">,
    Statistic<"numTransposes", "transposes-moved", "transposes moved or absorbed">
  ];
}

def SinkBelowConcatenates : InterfacePass<"lamina-sink-below-concatenates", "::mlir::FunctionOpInterface"> {
  let summary = "compute what changes an operand of a concatenation after it";
  let description = [{
    A concatenation reads memory, so an elementwise op between a part of a value
    and the concatenation would be a kernel of its own. Where the op has one
    operand that is no literal and nothing else uses its result, the parts are
    joined first; the op is then computed for all of them, and its results are
    selected where that operand lies. At most four ops move for a concatenation.

    ```mlir
    func.func @rotate(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = prim.slice %x [0, 4] to [4, 8] step [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
      %1 = prim.neg %0 : tensor<4x4xf32>
      %2 = prim.slice %x [0, 0] to [4, 4] step [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
      %3 = prim.concatenate %1, %2 dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
      return %3 : tensor<4x8xf32>
    }
    ```
    becomes `select(iota < 4, neg(c), c)` with `c = concatenate(%0, %2)`. Linear.
  }];
  let dependentDialects = ["::lamina::prim::PrimDialect"];
  let statistics = [Statistic<"numMoved", "moved", "ops computed after a concatenation">];
}

def EraseDead : InterfacePass<"lamina-erase-dead", "::mlir::FunctionOpInterface"> {
  let summary = "erase ops without side effects whose results nothing uses";
  let description = [{
    Visits the ops from the last to the first, so that one sweep is enough, and
    changes nothing else: the importer emits more than it turns out to need.
  }];
}

def PrintSizes : InterfacePass<"lamina-print-sizes", "::mlir::FunctionOpInterface"> {
  let summary = "emit a remark at each op of tensors with the size expressions of its results";
  let description = [{
    The sizes are those that other passes see, in canonical form. Nothing is
    changed. Symbols from s65536 on stand for sizes that are not known.
  }];
}
#endif
