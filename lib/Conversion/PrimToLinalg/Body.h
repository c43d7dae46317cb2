// The body of one linalg.generic (or of a loop nest) under construction: reads of prim values as scalars.
#ifndef LAMINA_CONVERSION_PRIM_TO_LINALG_BODY_H
#define LAMINA_CONVERSION_PRIM_TO_LINALG_BODY_H

#include "lib/Conversion/PrimToLinalg/Emitter.h"

namespace lamina {

class Body {
public:
  /// The body of a generic over loops of these sizes.
  Body(Emitter &emitter, mlir::Location loc, llvm::ArrayRef<mlir::AffineExpr> loopSizes);
  /// A body at `builder`, whose indices are all values.
  Body(Emitter &emitter, mlir::Location loc, mlir::OpBuilder &at);

  // ---- reads
  /// Loop `i` at dimension i.
  Access getIdentity() const;
  mlir::AffineExpr getLoop(unsigned loop) const { return mlir::getAffineDimExpr(loop, emitter.getContext()); }
  /// The element of `value` at `access`, in the value's scalar type.
  mlir::Value getScalar(mlir::Value value, const Access &access);
  /// The same, computed from its operands although a tensor may hold it.
  mlir::Value computeScalar(mlir::Value value, const Access &access);
  /// Makes later reads of `value` at `access` be `scalar`.
  void bind(mlir::Value value, const Access &access, mlir::Value scalar) { known[value].push_back({access, scalar}); }
  /// What `read` returns where a tensor of these sizes has elements, else `otherwise`. An empty tensor has no element
  /// that a clamped index could read instead, and its strides may be divisors.
  mlir::Value readUnlessEmpty(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::Value otherwise,
                              llvm::function_ref<mlir::Value()> read);
  /// A scalar where the indices are inside `value`, else `fill`; dimensions not in `checked` are known to be inside.
  mlir::Value getGuarded(mlir::Value value, Access access, llvm::ArrayRef<bool> checked, mlir::Value condition,
                         mlir::Value fill);

  // ---- indices
  mlir::Value getValue(const Index &index);
  Index add(const Index &lhs, const Index &rhs);
  Index multiply(const Index &lhs, mlir::AffineExpr rhs);
  Index divide(const Index &lhs, mlir::AffineExpr rhs);
  Index modulo(const Index &lhs, mlir::AffineExpr rhs);
  /// The index moved into 0..size-1.
  mlir::Value clamp(mlir::Value index, mlir::AffineExpr size);

  // ---- results
  /// A destination; the result is the block argument with its present element.
  mlir::Value addOut(mlir::Value init, mlir::AffineMap map);
  /// An input that is read as it is.
  mlir::Value addInput(mlir::Value tensor, mlir::AffineMap map);
  mlir::linalg::GenericOp finish(llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                                 llvm::ArrayRef<mlir::Value> yields, llvm::StringRef mark = "");

  mlir::OpBuilder builder;
  mlir::Location loc;

private:
  mlir::Value selectInside(mlir::Value value, Access access, llvm::ArrayRef<bool> checked, mlir::Value condition,
                           mlir::Value fill);
  mlir::Value read(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> sizes, const Access &access);
  mlir::Value readAsInput(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> sizes, const Access &access);
  mlir::Value pull(mlir::Operation *op, const Access &access);
  mlir::Value pullPad(prim::PadOp op, const Access &access);
  mlir::Value pullConcatenate(prim::ConcatenateOp op, const Access &access);
  mlir::Value pullGather(prim::GatherOp op, const Access &access);
  mlir::Value pullReshape(prim::ReshapeOp op, const Access &access);
  mlir::Value pullIota(prim::IotaOp op, const Access &access);
  mlir::Value evaluate(mlir::AffineExpr expr);

  Emitter &emitter;
  Exprs loopSizes;
  std::unique_ptr<mlir::Block> block;
  llvm::SmallVector<mlir::Value> inputs, outs;
  llvm::SmallVector<mlir::AffineMap> inputMaps, outMaps;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Access, mlir::Value>>> known;
  llvm::DenseMap<mlir::AffineExpr, mlir::Value> evaluated;
};

} // namespace lamina
#endif
