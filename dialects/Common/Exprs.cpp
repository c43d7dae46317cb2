// Lists of size expressions: construction, parsing, printing.
#include "dialects/Common/Exprs.h"
#include "mlir/IR/AffineExprVisitor.h"

using namespace mlir;

static unsigned countSymbols(ArrayRef<AffineExpr> exprs) {
  unsigned count = 0;
  for (AffineExpr expr : exprs)
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        count = std::max(count, symbol.getPosition() + 1);
    });
  return count;
}

AffineMapAttr lamina::getExprs(MLIRContext *context, ArrayRef<AffineExpr> exprs) {
  return AffineMapAttr::get(AffineMap::get(0, countSymbols(exprs), exprs, context));
}

AffineMapAttr lamina::getExprs(MLIRContext *context, ArrayRef<int64_t> values) {
  Exprs exprs;
  for (int64_t value : values)
    exprs.push_back(getAffineConstantExpr(value, context));
  return getExprs(context, exprs);
}

lamina::Exprs lamina::getStaticSizes(RankedTensorType type) {
  Exprs sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(getAffineConstantExpr(size, type.getContext()));
  return sizes;
}

RankedTensorType lamina::getTensorType(ArrayRef<AffineExpr> sizes, Type elementType) {
  SmallVector<int64_t> shape;
  for (AffineExpr size : sizes) {
    auto constant = dyn_cast<AffineConstantExpr>(size);
    shape.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, elementType);
}

std::string lamina::toString(AffineExpr expr) {
  std::string text;
  llvm::raw_string_ostream(text) << expr;
  return text;
}

LogicalResult lamina::verifyExprs(AffineMap exprs, size_t count, StringRef what,
                                  function_ref<InFlightDiagnostic()> emitError) {
  if (exprs.getNumDims())
    return emitError() << what << " uses dimensions; sizes are expressions over symbols";
  if (exprs.getNumResults() != count)
    return emitError() << what << " has " << exprs.getNumResults() << " entries, not " << count;
  bool badDivisor = false;
  exprs.walkExprs([&](AffineExpr expr) {
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr))
      if (expr.getKind() != AffineExprKind::Add && expr.getKind() != AffineExprKind::Mul)
        if (auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
          badDivisor |= divisor.getValue() < 1;
  });
  if (badDivisor)
    return emitError() << what << " divides by a constant below 1";
  if (countSymbols(exprs.getResults()) > kMaxSymbols)
    return emitError() << what << " uses a symbol above s" << kMaxSymbols - 1;
  return success();
}

LogicalResult lamina::verifySizes(AffineMap sizes, ArrayRef<int64_t> shape, StringRef what,
                                  function_ref<InFlightDiagnostic()> emitError) {
  if (failed(verifyExprs(sizes, shape.size(), what, emitError)))
    return failure();
  for (auto [i, size] : llvm::enumerate(sizes.getResults())) {
    auto constant = dyn_cast<AffineConstantExpr>(size);
    if (constant && constant.getValue() < 0)
      return emitError() << what << ": size of dimension " << i << " is negative";
    if (!ShapedType::isDynamic(shape[i]) && (!constant || constant.getValue() != shape[i]))
      return emitError() << what << ": size of dimension " << i << " is " << toString(size) << ", the type's is "
                         << shape[i];
  }
  return success();
}

ParseResult lamina::parseExprs(OpAsmParser &parser, AffineMapAttr &exprs) {
  MLIRContext *context = parser.getContext();
  SmallVector<std::string> names;
  for (unsigned i = 0; i < kMaxSymbols; ++i)
    names.push_back("s" + std::to_string(i));
  SmallVector<std::pair<StringRef, AffineExpr>> symbols;
  for (unsigned i = 0; i < kMaxSymbols; ++i)
    symbols.push_back({names[i], getAffineSymbolExpr(i, context)});
  Exprs list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseAffineExpr(symbols, list.emplace_back()); }))
    return failure();
  exprs = getExprs(context, list);
  return success();
}

void lamina::printExprs(OpAsmPrinter &printer, Operation *, AffineMapAttr exprs) {
  printer << '[';
  llvm::interleaveComma(exprs.getValue().getResults(), printer, [&](AffineExpr e) { printer << e; });
  printer << ']';
}
