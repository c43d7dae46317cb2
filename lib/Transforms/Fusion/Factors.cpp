// Factors: splitting and sharing of dimensions.
#include "lib/Transforms/Fusion/Factors.h"
#include "dialects/Prim/PrimSizes.h"

using namespace mlir;
using namespace lamina;

/// An expression as a constant times other factors.
static int64_t collectProduct(AffineExpr expr, SmallVectorImpl<AffineExpr> &factors) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Mul) {
    int64_t left = collectProduct(binary.getLHS(), factors);
    return left * collectProduct(binary.getRHS(), factors);
  }
  factors.push_back(expr);
  return 1;
}

std::optional<AffineExpr> lamina::divideExactly(AffineExpr a, AffineExpr b) {
  SmallVector<AffineExpr> factorsA, factorsB;
  int64_t constantA = collectProduct(a, factorsA), constantB = collectProduct(b, factorsB);
  if (constantB <= 0 || constantA <= 0 || constantA % constantB)
    return std::nullopt;
  for (AffineExpr factor : factorsB) {
    auto *it = llvm::find(factorsA, factor);
    if (it == factorsA.end())
      return std::nullopt;
    factorsA.erase(it);
  }
  AffineExpr quotient = getAffineConstantExpr(constantA / constantB, a.getContext());
  for (AffineExpr factor : factorsA)
    quotient = factor * quotient;
  return simplifySize(quotient);
}

unsigned Factors::create(AffineExpr size, bool rigid) {
  nodes.push_back({size, static_cast<unsigned>(nodes.size()), {}, rigid, false});
  return nodes.size() - 1;
}

unsigned Factors::find(unsigned factor) const {
  while (nodes[factor].parent != factor)
    factor = nodes[factor].parent;
  return factor;
}

void Factors::appendLeaves(unsigned factor, List &out) const {
  factor = find(factor);
  if (nodes[factor].parts.empty())
    out.push_back(factor);
  for (unsigned part : nodes[factor].parts)
    appendLeaves(part, out);
}

Factors::List Factors::leaves(ArrayRef<unsigned> list) const {
  List out;
  for (unsigned factor : list)
    appendLeaves(factor, out);
  return out;
}

bool Factors::isOne(unsigned leaf) const {
  auto constant = dyn_cast<AffineConstantExpr>(nodes[leaf].size);
  return constant && constant.getValue() == 1;
}

void Factors::block(ArrayRef<unsigned> list) {
  for (unsigned leaf : leaves(list))
    nodes[leaf].blocked = true;
}

bool Factors::unite(unsigned a, unsigned b) {
  if (a == b)
    return true;
  // A constant says more than an expression.
  if (isa<AffineConstantExpr>(nodes[b].size))
    nodes[a].size = nodes[b].size;
  nodes[b].parent = a;
  nodes[a].rigid |= nodes[b].rigid;
  nodes[a].blocked |= nodes[b].blocked;
  return true;
}

bool Factors::unifyDims(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  List left = leaves(a), right = leaves(b);
  if (left.size() == 1 && right.size() == 1)
    return unite(left[0], right[0]);
  return unify(left, right);
}

bool Factors::unify(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  List left = leaves(a), right = leaves(b);
  // Splits `list`'s last factor into an outer rest and an inner part that equals `other`'s last one.
  auto split = [&](List &list, List &other) {
    unsigned whole = list.back(), inner = other.back();
    std::optional<AffineExpr> rest = divideExactly(nodes[whole].size, nodes[inner].size);
    if (!rest || nodes[whole].rigid)
      return false;
    unsigned outer = create(*rest);
    nodes[outer].blocked = nodes[whole].blocked;
    nodes[inner].blocked |= nodes[whole].blocked;
    nodes[whole].parts = {outer, inner};
    list.back() = outer;
    other.pop_back();
    return true;
  };
  // A factor met twice may have been split in the meantime.
  auto refresh = [&](List &list) {
    List parts;
    appendLeaves(list.pop_back_val(), parts);
    list.append(parts);
  };
  while (!left.empty() && !right.empty()) {
    refresh(left);
    refresh(right);
    if (isOne(left.back()) != isOne(right.back())) {
      (isOne(left.back()) ? left : right).pop_back();
    } else if (nodes[left.back()].size == nodes[right.back()].size) {
      unite(left.pop_back_val(), right.pop_back_val());
    } else if (!split(left, right) && !split(right, left)) {
      return false;
    }
  }
  auto allOnes = [&](ArrayRef<unsigned> rest) {
    return llvm::all_of(rest, [&](unsigned f) { return isOne(find(f)); });
  };
  return allOnes(left) && allOnes(right);
}
