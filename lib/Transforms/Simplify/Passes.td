// Passes that simplify programs of prim ops before fusion.
#ifndef LAMINA_SIMPLIFY_PASSES_TD
#define LAMINA_SIMPLIFY_PASSES_TD
include "mlir/Pass/PassBase.td"

def SimplifyReshapes : InterfacePass<"lamina-simplify-reshapes", "::mlir::FunctionOpInterface"> {
  let summary = "cancel reshapes and transposes across elementwise ops and contractions";
  let description = [{
    Elementwise ops and the free and batch dimensions of `prim.dot_general` are
    given the finest shape around them: a reshape that splits dimensions moves
    up, one that merges dimensions moves down, and the two vanish where they
    meet. Transposes move down through elementwise ops whose operands are all
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
