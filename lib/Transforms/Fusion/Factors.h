// Factors: the dimensions of a kernel's values, split as far as its reshapes need and shared between values.
//
// Every dimension of every value is a list of factors. Ops say which dimensions have the same elements; a reshape says
// that two whole lists do. Unifying lists splits a factor when the other side needs it finer: 768 against 12 x 64.
#ifndef LAMINA_FUSION_FACTORS_H
#define LAMINA_FUSION_FACTORS_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <vector>

namespace lamina {

/// a / b as an expression, when the division leaves no remainder whatever the symbols are.
std::optional<mlir::AffineExpr> divideExactly(mlir::AffineExpr a, mlir::AffineExpr b);

class Factors {
public:
  using List = llvm::SmallVector<unsigned, 2>;

  /// A new factor. A rigid one may not be split, and stays even when its size is 1.
  unsigned create(mlir::AffineExpr size, bool rigid = false);
  /// Makes two lists of factors equal, splitting where needed; false if they cannot be.
  bool unify(llvm::ArrayRef<unsigned> a, llvm::ArrayRef<unsigned> b);
  /// Makes single factors equal whose sizes are known to be equal though their expressions may differ.
  bool unifyDims(llvm::ArrayRef<unsigned> a, llvm::ArrayRef<unsigned> b);
  /// The unsplit factors that a list stands for.
  List leaves(llvm::ArrayRef<unsigned> list) const;

  mlir::AffineExpr size(unsigned leaf) const { return nodes[leaf].size; }
  bool isRigid(unsigned leaf) const { return nodes[leaf].rigid; }
  /// A blocked factor is swept whole by each program: it is reduced somewhere in the kernel.
  bool isBlocked(unsigned leaf) const { return nodes[leaf].blocked; }
  void block(llvm::ArrayRef<unsigned> list);
  bool isOne(unsigned leaf) const;

private:
  struct Node {
    mlir::AffineExpr size;
    unsigned parent;
    List parts;
    bool rigid, blocked;
  };
  unsigned find(unsigned factor) const;
  bool unite(unsigned a, unsigned b);
  void appendLeaves(unsigned factor, List &out) const;

  std::vector<Node> nodes;
};

} // namespace lamina
#endif
