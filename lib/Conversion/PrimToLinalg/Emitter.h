// The state of a conversion from prim to linalg: sizes, the tensors made so far, and the emitters of each family of
// ops.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_EMITTER_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_EMITTER_H

#include "dialects/Prim/PrimSizes.h"
#include "lib/Conversion/PrimToLinalg/Access.h"
#include "lib/Conversion/PrimToLinalg/Plan.h"
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace lamina {

class Emitter {
public:
  Emitter(mlir::FunctionOpInterface func, SizeAnalysis &sizes, const Plan &plan);

  /// Makes everything in the plan; the function's return then has linalg's tensors as operands.
  mlir::LogicalResult run();
  unsigned getNumGenerics() const { return numGenerics; }

  // ---- sizes
  llvm::ArrayRef<mlir::AffineExpr> getSizes(mlir::Value value) { return sizes.getSizes(value); }
  /// The value of a function symbol.
  mlir::Value getSymbol(unsigned number);
  /// A size expression as an attribute or value at the builder's position.
  mlir::OpFoldResult getSize(mlir::AffineExpr expr);
  llvm::SmallVector<mlir::OpFoldResult> getSizes(llvm::ArrayRef<mlir::AffineExpr> exprs);
  mlir::Value getSizeValue(mlir::AffineExpr expr);
  mlir::MLIRContext *getContext() { return builder.getContext(); }

  // ---- tensors
  /// The tensor that holds a prim value, or null if it is computed where it is read. Its element type may be wider.
  mlir::Value lookup(mlir::Value value) const { return tensors.lookup(value); }
  void define(mlir::Value value, mlir::Value tensor) { tensors[value] = tensor; }
  /// The same, in the value's own element type.
  mlir::Value getTensor(mlir::Value value);
  mlir::Value makeEmpty(mlir::Location loc, llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::Type elementType);
  mlir::Value makeFilled(mlir::Location loc, llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::TypedAttr value);
  /// Dimension `dim` of a tensor as (parts...) and back.
  mlir::Value splitDim(mlir::Location loc, mlir::Value tensor, unsigned dim, llvm::ArrayRef<mlir::AffineExpr> newSizes,
                       unsigned parts);
  mlir::Value mergeDims(mlir::Location loc, mlir::Value tensor, unsigned dim, llvm::ArrayRef<mlir::AffineExpr> newSizes,
                        unsigned parts);

  mlir::OpBuilder builder;
  unsigned numGenerics = 0;
  /// Whether scatters are reductions, of which programs share the elements.
  bool parallelScatters = false;

private:
  mlir::LogicalResult emit(const Group &group);
  void emitMerged(const Group &group);
  mlir::LogicalResult emitAlone(mlir::Operation *op);
  void emitReshape(mlir::Operation *op);
  void emitConstant(mlir::Operation *op);
  mlir::LogicalResult bindArguments();

  mlir::FunctionOpInterface func;
  SizeAnalysis &sizes;
  const Plan &plan;
  llvm::DenseMap<mlir::Value, mlir::Value> tensors;
  llvm::DenseMap<unsigned, mlir::Value> symbols;
  llvm::SmallVector<mlir::Value> results;
};

// ---- families of ops that have a file of their own
void emitArgReduce(Emitter &emitter, prim::ArgReduceOp op);
void emitScan(Emitter &emitter, prim::ScanOp op);
void emitSort(Emitter &emitter, prim::SortOp op);
void emitDotGeneral(Emitter &emitter, prim::DotGeneralOp op);
void emitConvolution(Emitter &emitter, prim::ConvolutionOp op);
void emitReduceWindow(Emitter &emitter, prim::ReduceWindowOp op);
void emitScatter(Emitter &emitter, prim::ScatterOp op);

} // namespace lamina
#endif
