// Lists of size expressions: construction, parsing, printing.
#include "dialects/Common/Exprs.h"
#include "mlir/IR/AffineExprVisitor.h"

using namespace mlir;

/// Symbols have fixed names in text, so that a list of expressions can be read on its own.
static constexpr unsigned kMaxSymbols = 64;

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
