// Size expressions: their canonical form, the sizes of prim ops' results, and the analysis of a function.
#include "dialects/Prim/PrimSizes.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Prim/Prim.h"
#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

// ---- canonical form --------------------------------------------------------------------------------------------

namespace {
/// Orders atoms (symbols, then quotients and remainders by their text, which is the same in every run).
int compareAtoms(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  auto symbolA = dyn_cast<AffineSymbolExpr>(a), symbolB = dyn_cast<AffineSymbolExpr>(b);
  if (symbolA && symbolB)
    return symbolA.getPosition() < symbolB.getPosition() ? -1 : 1;
  if (symbolA || symbolB)
    return symbolA ? -1 : 1;
  return toString(a) < toString(b) ? -1 : 1;
}

/// A product of atoms, sorted.
using Monomial = SmallVector<AffineExpr, 2>;
struct MonomialOrder {
  bool operator()(const Monomial &a, const Monomial &b) const {
    if (a.size() != b.size())
      return a.size() > b.size(); // the constant last
    for (auto [x, y] : llvm::zip(a, b))
      if (int order = compareAtoms(x, y))
        return order < 0;
    return false;
  }
};

/// An integer polynomial over atoms.
struct Polynomial {
  std::map<Monomial, int64_t, MonomialOrder> terms;
  bool overflow = false;

  void add(const Monomial &monomial, int64_t coefficient) {
    int64_t &term = terms[monomial];
    overflow |= llvm::AddOverflow(term, coefficient, term);
    if (term == 0)
      terms.erase(monomial);
  }
  void add(const Polynomial &other) {
    overflow |= other.overflow;
    for (auto &[monomial, coefficient] : other.terms)
      add(monomial, coefficient);
  }
  Polynomial times(const Polynomial &other) const {
    Polynomial result;
    result.overflow = overflow || other.overflow;
    for (auto &[a, x] : terms)
      for (auto &[b, y] : other.terms) {
        Monomial product(a);
        product.append(b.begin(), b.end());
        llvm::sort(product, [](AffineExpr l, AffineExpr r) { return compareAtoms(l, r) < 0; });
        int64_t coefficient;
        result.overflow |= llvm::MulOverflow(x, y, coefficient);
        result.add(product, coefficient);
      }
    return result;
  }
  std::optional<int64_t> getConstant() const {
    if (terms.empty())
      return 0;
    if (terms.size() == 1 && terms.begin()->first.empty())
      return terms.begin()->second;
    return std::nullopt;
  }
  AffineExpr getExpr(MLIRContext *context) const {
    AffineExpr sum;
    for (auto &[monomial, coefficient] : terms) {
      AffineExpr term;
      for (AffineExpr atom : monomial)
        term = term ? term * atom : atom;
      term = term ? term * coefficient : getAffineConstantExpr(coefficient, context);
      sum = sum ? sum + term : term;
    }
    return sum ? sum : getAffineConstantExpr(0, context);
  }
};

class Canonicalizer {
public:
  explicit Canonicalizer(MLIRContext *context) : context(context) {}

  Polynomial visit(AffineExpr expr) {
    Polynomial result;
    switch (expr.getKind()) {
    case AffineExprKind::Constant:
      result.add(Monomial{}, cast<AffineConstantExpr>(expr).getValue());
      return result;
    case AffineExprKind::SymbolId:
    case AffineExprKind::DimId:
      result.add(Monomial{expr}, 1);
      return result;
    default:
      break;
    }
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Polynomial lhs = visit(binary.getLHS()), rhs = visit(binary.getRHS());
    if (expr.getKind() == AffineExprKind::Add) {
      lhs.add(rhs);
      return lhs;
    }
    if (expr.getKind() == AffineExprKind::Mul)
      return lhs.times(rhs);
    return divide(expr.getKind(), lhs, rhs);
  }

private:
  /// What the divisor (one term) divides leaves the quotient, so that coefficients under the operator are in
  /// 0..divisor-1; the rest stays there. A constant divisor below 1 stays as it is.
  Polynomial divide(AffineExprKind kind, Polynomial lhs, const Polynomial &rhs) {
    std::optional<int64_t> divisor = rhs.getConstant();
    if (divisor && kind == AffineExprKind::CeilDiv && *divisor > 0) {
      lhs.add(Monomial{}, *divisor - 1);
      kind = AffineExprKind::FloorDiv;
    }
    bool mod = kind == AffineExprKind::Mod;
    bool single = rhs.terms.size() == 1 && rhs.terms.begin()->second > 0;
    Polynomial quotient, rest;
    quotient.overflow = lhs.overflow || rhs.overflow;
    for (auto &[monomial, coefficient] : lhs.terms) {
      std::optional<Monomial> factors = single ? without(monomial, rhs.terms.begin()->first) : std::nullopt;
      if (factors) {
        quotient.add(*factors, llvm::divideFloorSigned(coefficient, rhs.terms.begin()->second));
        rest.add(monomial, llvm::mod(coefficient, rhs.terms.begin()->second));
      } else {
        rest.add(monomial, coefficient);
      }
    }
    Polynomial result;
    result.overflow = quotient.overflow || rest.overflow;
    if (!mod)
      result = quotient;
    std::optional<int64_t> left = rest.getConstant();
    if (left && divisor && *divisor > 0) {
      // Already reduced to 0..divisor-1.
      if (mod)
        result.add(Monomial{}, *left);
      return result;
    }
    if (rest.terms.empty())
      return result;
    AffineExpr atom = getAffineBinaryOpExpr(kind, rest.getExpr(context), rhs.getExpr(context));
    result.add(Monomial{atom}, 1);
    return result;
  }

  static std::optional<Monomial> without(const Monomial &monomial, const Monomial &factors) {
    Monomial left(monomial);
    for (AffineExpr factor : factors) {
      auto *it = llvm::find(left, factor);
      if (it == left.end())
        return std::nullopt;
      left.erase(it);
    }
    return left;
  }

  MLIRContext *context;
};
} // namespace

AffineExpr lamina::simplifySize(AffineExpr expr) {
  if (isa<AffineConstantExpr, AffineSymbolExpr>(expr))
    return expr;
  Polynomial polynomial = Canonicalizer(expr.getContext()).visit(expr);
  return polynomial.overflow ? expr : polynomial.getExpr(expr.getContext());
}

AffineExpr lamina::getNumElements(ArrayRef<AffineExpr> sizes, MLIRContext *context) {
  // A size of 0 decides before the others can overflow.
  for (AffineExpr size : sizes)
    if (size == 0)
      return size;
  AffineExpr product = getAffineConstantExpr(1, context);
  for (AffineExpr size : sizes)
    product = product * size;
  return simplifySize(product);
}

Exprs lamina::getRowMajorStrides(ArrayRef<AffineExpr> sizes, MLIRContext *context) {
  Exprs strides(sizes.size());
  AffineExpr stride = getAffineConstantExpr(1, context);
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = simplifySize(stride * sizes[i]);
  }
  return strides;
}

bool lamina::hasUnknownSize(AffineExpr size) {
  bool unknown = false;
  size.walk([&](AffineExpr expr) {
    auto symbol = dyn_cast<AffineSymbolExpr>(expr);
    unknown |= symbol && symbol.getPosition() >= kFirstUnknownSymbol;
  });
  return unknown;
}

Exprs lamina::getTypeSizes(RankedTensorType type, unsigned &next) {
  Exprs sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? getAffineSymbolExpr(next++, type.getContext())
                                                : getAffineConstantExpr(size, type.getContext()));
  return sizes;
}

// ---- sizes of results ------------------------------------------------------------------------------------------

Exprs prim::transposeSizes(ArrayRef<AffineExpr> sizes, ArrayRef<int64_t> permutation) {
  Exprs result;
  for (int64_t dim : permutation)
    result.push_back(sizes[dim]);
  return result;
}

Exprs prim::dropSizes(ArrayRef<AffineExpr> sizes, ArrayRef<int64_t> dims) {
  Exprs result;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      result.push_back(size);
  return result;
}

Exprs prim::concatenateSizes(ArrayRef<Exprs> operands, int64_t dim) {
  Exprs result = elementwiseSizes(operands);
  result[dim] = operands.front()[dim];
  for (const Exprs &sizes : operands.drop_front())
    result[dim] = simplifySize(result[dim] + sizes[dim]);
  return result;
}

Exprs prim::gatherSizes(ArrayRef<AffineExpr> operand, ArrayRef<AffineExpr> indices, ArrayRef<int64_t> dims) {
  Exprs result(indices);
  result.append(dropSizes(operand, dims));
  return result;
}

Exprs prim::elementwiseSizes(ArrayRef<Exprs> operands) {
  Exprs result = operands.front();
  for (const Exprs &sizes : operands.drop_front())
    for (auto [size, other] : llvm::zip(result, sizes))
      if (isa<AffineConstantExpr>(other))
        size = other;
  return result;
}

/// (low + size + high - (window - 1) * dilation - 1) floordiv stride + 1
static AffineExpr windowSize(AffineExpr size, AffineExpr window, int64_t stride, int64_t dilation, int64_t low,
                             int64_t high) {
  return simplifySize((size + (low + high) - (window - 1) * dilation - 1).floorDiv(stride) + 1);
}

static Exprs fromAttribute(std::optional<AffineMap> sizes, Value result) {
  if (sizes)
    return Exprs(sizes->getResults());
  unsigned next = kFirstUnknownSymbol;
  return getTypeSizes(cast<RankedTensorType>(result.getType()), next);
}

FailureOr<SmallVector<Exprs>> prim::inferUnrefinedSizes(Operation *op, ArrayRef<Exprs> operands) {
  using Result = FailureOr<SmallVector<Exprs>>;
  auto one = [](Exprs sizes) -> Result { return SmallVector<Exprs>{std::move(sizes)}; };
  return TypeSwitch<Operation *, Result>(op)
      .Case<ConstantOp>([&](auto op) { return one(fromAttribute(std::nullopt, op.getResult())); })
      .Case<SizeOp>([&](auto) { return one({}); })
      .Case<IotaOp, BroadcastOp, ReshapeOp>([&](auto op) { return one(fromAttribute(op.getSizes(), op.getResult())); })
      .Case([&](TransposeOp op) { return one(transposeSizes(operands[0], op.getPermutation())); })
      .Case([&](SliceOp op) {
        Exprs sizes;
        for (auto [start, limit, stride] :
             llvm::zip(op.getStarts().getResults(), op.getLimits().getResults(), op.getStrides()))
          sizes.push_back(simplifySize((limit - start).ceilDiv(stride)));
        return one(sizes);
      })
      .Case([&](PadOp op) {
        Exprs sizes;
        for (auto [size, low, high] : llvm::zip(operands[0], op.getLow().getResults(), op.getHigh().getResults()))
          sizes.push_back(simplifySize(low + size + high));
        return one(sizes);
      })
      .Case([&](ConcatenateOp op) { return one(concatenateSizes(operands, op.getDim())); })
      .Case<ReverseOp, ScatterOp, ScanOp>([&](auto) { return one(operands[0]); })
      .Case([&](GatherOp op) {
        return one(gatherSizes(operands[0], elementwiseSizes(operands.drop_front()), op.getDims()));
      })
      .Case([&](ReduceOp op) { return one(dropSizes(operands[0], op.getDims())); })
      .Case([&](ArgReduceOp op) { return one(dropSizes(operands[0], static_cast<int64_t>(op.getDim()))); })
      .Case([&](SortOp) -> Result { return SmallVector<Exprs>{operands[0], operands[0]}; })
      .Case([&](ReduceWindowOp op) {
        Exprs sizes;
        for (auto [i, size] : llvm::enumerate(operands[0]))
          sizes.push_back(windowSize(size, getAffineConstantExpr(op.getWindowSizes()[i], op.getContext()),
                                     op.getStrides()[i], op.getDilations()[i], op.getLow()[i], op.getHigh()[i]));
        return one(sizes);
      })
      .Case([&](DotGeneralOp op) {
        auto outside = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
          SmallVector<int64_t> dims(a);
          dims.append(b.begin(), b.end());
          return dims;
        };
        Exprs sizes;
        for (auto [lhs, rhs] : llvm::zip(op.getLhsBatch(), op.getRhsBatch()))
          sizes.push_back(elementwiseSizes({Exprs{operands[0][lhs]}, Exprs{operands[1][rhs]}})[0]);
        sizes.append(dropSizes(operands[0], outside(op.getLhsBatch(), op.getLhsContract())));
        sizes.append(dropSizes(operands[1], outside(op.getRhsBatch(), op.getRhsContract())));
        return one(sizes);
      })
      .Case([&](ConvolutionOp op) {
        Exprs sizes = {operands[0][0], operands[1][0]};
        for (size_t i = 0; i < op.getStrides().size(); ++i) {
          // Zeros between elements: (size - 1) * dilation + 1; a convolution over no elements is an error in eager.
          AffineExpr size = operands[0][i + 2];
          if (op.getLhsDilations()[i] != 1)
            size = (size - 1) * op.getLhsDilations()[i] + 1;
          sizes.push_back(windowSize(size, operands[1][i + 2], op.getStrides()[i], op.getDilations()[i], op.getLow()[i],
                                     op.getHigh()[i]));
        }
        return one(sizes);
      })
      .Default([&](Operation *op) -> Result {
        if (isa_and_present<PrimDialect>(op->getDialect()) && op->hasTrait<OpTrait::Elementwise>())
          return one(elementwiseSizes(operands));
        return failure();
      });
}

FailureOr<SmallVector<Exprs>> prim::inferSizes(Operation *op, ArrayRef<Exprs> operands) {
  FailureOr<SmallVector<Exprs>> result = inferUnrefinedSizes(op, operands);
  if (succeeded(result))
    for (auto [value, sizes] : llvm::zip(op->getResults(), *result))
      for (auto [size, extent] : llvm::zip(sizes, cast<RankedTensorType>(value.getType()).getShape()))
        if (!ShapedType::isDynamic(extent))
          size = getAffineConstantExpr(extent, op->getContext());
  return result;
}

// ---- analysis --------------------------------------------------------------------------------------------------

void SizeAnalysis::store(Value value, Exprs sizes) {
  for (AffineExpr &size : sizes)
    size = simplifySize(size);
  known[value] = ArrayRef<AffineExpr>(sizes).copy(allocator);
}

/// The sizes of argument `index` of a function, if they are known.
static std::optional<Exprs> getArgSizes(FunctionOpInterface func, unsigned index) {
  if (auto attr = func.getArgAttrOfType<AffineMapAttr>(index, "prim.sizes"))
    return Exprs(attr.getValue().getResults());
  return std::nullopt;
}

/// The sizes of output `index` of a launch, in the host's symbols.
static std::optional<Exprs> getLaunchSizes(kernel::LaunchOp launch, unsigned index) {
  auto func = SymbolTable::lookupNearestSymbolFrom<kernel::FuncOp>(launch, launch.getKernelAttr());
  if (!func || index >= func.getOuts())
    return std::nullopt;
  std::optional<Exprs> sizes = getArgSizes(func, func.getNumIns() + index);
  if (sizes)
    for (AffineExpr &size : *sizes)
      size = size.replaceSymbols(launch.getSymbols().getResults());
  return sizes;
}

/// Computes the sizes of one value; those of a prim op's operands must be known.
void SizeAnalysis::compute(Value value) {
  auto type = cast<ShapedType>(value.getType());
  std::optional<Exprs> sizes;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast_or_null<FunctionOpInterface>(func);
    if (function && arg.getOwner()->getParentOp() == func && arg.getOwner()->isEntryBlock())
      sizes = getArgSizes(function, arg.getArgNumber());
  } else if (Operation *op = value.getDefiningOp(); isa_and_present<PrimDialect>(op->getDialect())) {
    SmallVector<Exprs> operands;
    for (Value operand : op->getOperands())
      operands.push_back(Exprs(known.lookup(operand)));
    if (auto results = inferSizes(op, operands); succeeded(results))
      sizes = (*results)[cast<OpResult>(value).getResultNumber()];
  } else if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
    sizes = getLaunchSizes(launch, cast<OpResult>(value).getResultNumber());
  } else if (auto view = dyn_cast<kernel::ViewOp>(op)) {
    sizes = Exprs(view.getSizes().getResults());
  } else if (isa<kernel::AllocOp>(op)) {
    for (OpOperand &use : value.getUses())
      if (auto launch = dyn_cast<kernel::LaunchOp>(use.getOwner()))
        if (unsigned number = use.getOperandNumber(); number >= launch.getIns().size() && !sizes)
          sizes = getLaunchSizes(launch, number - launch.getIns().size());
  }
  // What the type says is certain; where it says nothing and nothing else does, the size gets a name of its own.
  Exprs result;
  bool usable = sizes && sizes->size() == static_cast<size_t>(type.getRank());
  for (auto [i, extent] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(extent))
      result.push_back(getAffineConstantExpr(extent, value.getContext()));
    else
      result.push_back(usable ? (*sizes)[i] : getAffineSymbolExpr(nextUnknown++, value.getContext()));
  }
  store(value, std::move(result));
}

ArrayRef<AffineExpr> SizeAnalysis::getSizes(Value value) {
  // An explicit stack: chains of ops are as long as the program.
  SmallVector<Value> stack = {value};
  while (!stack.empty()) {
    Value top = stack.back();
    if (known.contains(top)) {
      stack.pop_back();
      continue;
    }
    size_t depth = stack.size();
    if (Operation *op = top.getDefiningOp(); op && isa_and_present<PrimDialect>(op->getDialect()))
      for (Value operand : op->getOperands())
        if (!known.contains(operand))
          stack.push_back(operand);
    if (stack.size() == depth) {
      compute(top);
      stack.pop_back();
    }
  }
  return known.lookup(value);
}
