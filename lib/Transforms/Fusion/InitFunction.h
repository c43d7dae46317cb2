// InitFunction: the function @init, which computes constants of @main once.
#ifndef LAMINA_FUSION_INIT_FUNCTION_H
#define LAMINA_FUSION_INIT_FUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lamina {

/// The attribute that says which constant an argument is.
constexpr llvm::StringLiteral kConstantAttr = "prim.constant";

class InitFunction {
public:
  /// Fails, with a diagnostic, unless the constants of @main are tensors, those that @init makes are results of it, and
  /// @init, if there is one, is a function of constants.
  static mlir::LogicalResult check(mlir::func::FuncOp main);

  /// `main` passes the check.
  explicit InitFunction(mlir::func::FuncOp main);

  /// Whether the value is an argument of @main that is a constant from the pool or from @init.
  static bool isConstantArgument(mlir::Value value);
  /// The value in @init of a constant argument of @main; @init gets an argument for it at need.
  mlir::Value valueOf(mlir::BlockArgument argument);
  /// A builder at the end of @init's body.
  mlir::OpBuilder builder();
  /// The result of `op`, an op at the end of @init, or that of an equal one that was there before; then `op` is erased.
  /// What several readers of a constant want is so computed and kept once.
  mlir::Value unique(mlir::Operation *op);
  /// Returns `value` from @init and gives @main an argument for it.
  mlir::BlockArgument addResult(mlir::Value value);
  /// Drops constant arguments of @main that nothing reads, and @init if it returns nothing.
  void finish();

private:
  mlir::func::FuncOp getOrCreate();

  mlir::func::FuncOp main, init;
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> results; // value in @init -> argument of @main
};

} // namespace lamina
#endif
