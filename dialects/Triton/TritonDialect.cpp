// The mirror of Triton's dialect: registration, verifiers, folds and the syntax that is not declarative.
#include "dialects/Common/FunctionSyntax.h"
#include "dialects/Triton/Triton.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::tt;

bool tt::isBlockShape(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size <= 0 || !llvm::isPowerOf2_64(size) || size > kMaxBlockElements / elements)
      return false;
    elements *= size;
  }
  return true;
}

/// The type with other elements: of a block, or of a scalar.
static Type withElement(Type type, Type element) {
  if (auto block = dyn_cast<RankedTensorType>(type))
    return block.clone(element);
  return element;
}

static Type getPointee(Type pointers) {
  auto ptr = dyn_cast<PtrType>(getElementTypeOrSelf(pointers));
  return ptr ? withElement(pointers, ptr.getPointeeType()) : Type();
}

// ---- syntax of loads and stores: all types follow from the pointers'

static ParseResult parseLoad(OpAsmParser &parser, Type &ptr, Type &mask, Type &other, Type &result,
                             const std::optional<OpAsmParser::UnresolvedOperand> &maskOperand,
                             const std::optional<OpAsmParser::UnresolvedOperand> &otherOperand) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(ptr))
    return failure();
  result = getPointee(ptr);
  if (!result)
    return parser.emitError(loc, "a pointer or a block of pointers is expected");
  if (maskOperand)
    mask = withElement(ptr, parser.getBuilder().getI1Type());
  if (otherOperand)
    other = result;
  return success();
}
static void printLoad(OpAsmPrinter &printer, Operation *, Type ptr, Type, Type, Type, Value, Value) { printer << ptr; }

static ParseResult parseStore(OpAsmParser &parser, Type &ptr, Type &value, Type &mask,
                              const std::optional<OpAsmParser::UnresolvedOperand> &maskOperand) {
  Type other;
  return parseLoad(parser, ptr, mask, other, value, maskOperand, std::nullopt);
}
static void printStore(OpAsmPrinter &printer, Operation *, Type ptr, Type, Type, Value) { printer << ptr; }

#include "dialects/Triton/TritonDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Triton/TritonTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Triton/TritonOps.cpp.inc"

void TTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Triton/TritonTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Triton/TritonOps.cpp.inc"
      >();
}

Operation *TTDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult PtrType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (isa<IntegerType, FloatType>(pointee) && !pointee.isInteger(1))
    return success();
  return emitError() << "a pointer to " << pointee << " cannot be; booleans are stored as i8";
}

Type TensorDescType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<TensorDescType>(loc, parser.getContext(), RankedTensorType::get(shape, element));
}
void TensorDescType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getBlock().getShape());
  printer << "x" << getBlock().getElementType() << ">";
}
LogicalResult TensorDescType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, RankedTensorType block) {
  if (block.getRank() == 0 || !isBlockShape(block.getShape()))
    return emitError() << "a descriptor of blocks " << block << " cannot be; sizes are powers of two";
  return success();
}

static LogicalResult verifyDivisibility(Operation *op, NamedAttribute attr) {
  if (attr.getName() != "tt.divisibility")
    return op->emitError() << "'" << attr.getName().getValue() << "' is no attribute of the dialect";
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (!number || !number.getType().isInteger(32) || number.getInt() <= 0)
    return op->emitError("'tt.divisibility' must be a positive i32");
  return success();
}
LogicalResult TTDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attr) {
  return verifyDivisibility(op, attr);
}
LogicalResult TTDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == "tt.num_stages")
    return success();
  return op->emitError() << "'" << attr.getName().getValue() << "' is no attribute of the dialect";
}

// ---- func

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(SymbolTable::getVisibilityAttrName(), builder.getStringAttr("public"));
  state.addRegion();
}
ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) { return parseFunction<FuncOp>(parser, result); }
void FuncOp::print(OpAsmPrinter &printer) { printFunction(printer, *this); }
LogicalResult FuncOp::verify() {
  if (getFunctionType().getNumResults())
    return emitOpError("has results; a kernel writes to memory");
  if (!llvm::all_of(getSymName(), [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return emitOpError("has a name that is no C identifier, which ptxas needs");
  for (Type type : getArgumentTypes())
    if (!isa<PtrType, FloatType, IntegerType>(type))
      return emitOpError("takes a ") << type << "; arguments are pointers or scalars";
  return success();
}

// ---- shapes

LogicalResult MakeRangeOp::verify() {
  int64_t start = getStartAttr().getInt(), end = getEndAttr().getInt();
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 1 || end - start != type.getDimSize(0))
    return emitOpError("from ") << start << " to " << end << " has another number of elements than " << type;
  return success();
}

LogicalResult SplatOp::verify() {
  if (getElementTypeOrSelf(getType()) != getSrc().getType())
    return emitOpError("makes ") << getType() << " of a " << getSrc().getType();
  return success();
}
OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (!adaptor.getSrc() || !isa<IntegerAttr, FloatAttr>(adaptor.getSrc()))
    return {};
  return SplatElementsAttr::get(cast<ShapedType>(getType()), adaptor.getSrc());
}

LogicalResult ExpandDimsOp::verify() {
  auto source = cast<RankedTensorType>(getSrc().getType()), result = cast<RankedTensorType>(getType());
  int64_t axis = getAxisAttr().getInt();
  if (axis < 0 || axis > source.getRank())
    return emitOpError("has axis ") << axis << ", which a block of rank " << source.getRank() << " has not";
  SmallVector<int64_t> shape(source.getShape());
  shape.insert(shape.begin() + axis, 1);
  if (result != RankedTensorType::get(shape, source.getElementType()))
    return emitOpError("makes ") << result << " of " << source;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto source = cast<RankedTensorType>(getSrc().getType()), result = cast<RankedTensorType>(getType());
  bool fits = source.getRank() == result.getRank() && source.getElementType() == result.getElementType();
  for (int64_t dim = 0; fits && dim < source.getRank(); ++dim)
    fits = source.getDimSize(dim) == 1 || source.getDimSize(dim) == result.getDimSize(dim);
  if (!fits)
    return emitOpError("makes ") << result << " of " << source;
  return success();
}

LogicalResult TransOp::verify() {
  auto source = cast<RankedTensorType>(getSrc().getType()), result = cast<RankedTensorType>(getType());
  SmallVector<int64_t> order(getOrder()), shape, sorted(order);
  llvm::sort(sorted);
  for (auto [i, dim] : llvm::enumerate(sorted))
    if (dim != static_cast<int64_t>(i) || sorted.size() != static_cast<size_t>(source.getRank()))
      return emitOpError("has an order that is no permutation of ") << source.getRank() << " dimensions";
  for (int64_t dim : order)
    shape.push_back(source.getDimSize(dim));
  if (result != RankedTensorType::get(shape, source.getElementType()))
    return emitOpError("makes ") << result << " of " << source;
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto source = cast<RankedTensorType>(getSrc().getType()), result = cast<RankedTensorType>(getType());
  if (source.getNumElements() != result.getNumElements() || source.getElementType() != result.getElementType())
    return emitOpError("makes ") << result << " of " << source;
  return success();
}

// ---- memory

static LogicalResult verifySameShape(Operation *op, Type type, Type other, StringRef what) {
  if (withElement(type, getElementTypeOrSelf(other)) != other)
    return op->emitOpError() << what << " has type " << other << ", the pointers have " << type;
  return success();
}

LogicalResult AddPtrOp::verify() {
  Type element = getElementTypeOrSelf(getOffset().getType());
  if (!element.isInteger(32) && !element.isInteger(64))
    return emitOpError("offset must be of i32 or i64, and is ") << getOffset().getType();
  return verifySameShape(*this, getPtr().getType(), getOffset().getType(), "offset");
}

LogicalResult MakeTensorDescriptorOp::verify() {
  RankedTensorType block = getType().getBlock();
  if (cast<PtrType>(getBase().getType()).getPointeeType() != block.getElementType())
    return emitOpError("is of a ") << getBase().getType() << " and has elements of " << block.getElementType();
  if (static_cast<int64_t>(getShape().size()) != block.getRank())
    return emitOpError("has ") << getShape().size() << " dimensions, its blocks have " << block.getRank();
  return success();
}

LogicalResult DescriptorLoadOp::verify() {
  RankedTensorType block = cast<TensorDescType>(getDesc().getType()).getBlock();
  if (getType() != block)
    return emitOpError("makes ") << getType() << ", the descriptor is of " << block;
  if (static_cast<int64_t>(getIndices().size()) != block.getRank())
    return emitOpError("has ") << getIndices().size() << " indices, its blocks have " << block.getRank()
                               << " dimensions";
  return success();
}

static LogicalResult verifyAccess(Operation *op, Type ptr, Type value, Value mask, StringRef what) {
  if (getPointee(ptr) != value)
    return op->emitOpError() << what << " has type " << value << ", the pointers have " << ptr;
  if (mask && mask.getType() != withElement(ptr, IntegerType::get(op->getContext(), 1)))
    return op->emitOpError() << "mask has type " << mask.getType() << ", the pointers have " << ptr;
  return success();
}
LogicalResult LoadOp::verify() {
  if (getOther() && !getMask())
    return emitOpError("has a value for masked elements and no mask");
  if (getOther() && getOther().getType() != getType())
    return emitOpError("other has type ") << getOther().getType() << ", the result has " << getType();
  return verifyAccess(*this, getPtr().getType(), getType(), getMask(), "the result");
}
LogicalResult AtomicRMWOp::verify() {
  Type element = getElementTypeOrSelf(getVal().getType());
  constexpr uint32_t kAdd = 4, kFloatAdd = 5, kMin = 7;
  bool isInteger = element.isInteger(32) || element.isInteger(64);
  uint32_t number = getAtomicRmwOp();
  if (!(number == kFloatAdd && isa<FloatType>(element)) &&
      !(number >= kAdd && number <= kMin && number != kFloatAdd && isInteger))
    return emitOpError("has no operation ") << number << " of " << element;
  if (getSem() < 1 || getSem() > 4 || getScope() < 1 || getScope() > 3)
    return emitOpError("has order ") << getSem() << " and scope " << getScope();
  return verifyAccess(*this, getPtr().getType(), getVal().getType(), getMask(), "the value");
}
LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getPtr().getType(), getValue().getType(), getMask(), "the value");
}

// ---- reductions and products

/// Whether the region of a reduction or scan combines two of each source.
template <typename Return>
static LogicalResult verifyCombination(Operation *op, Block &block, ArrayRef<Type> elements) {
  auto *terminator = block.empty() ? nullptr : dyn_cast<Return>(block.back()).getOperation();
  SmallVector<Type> arguments(elements);
  arguments.append(elements.begin(), elements.end());
  if (!terminator || block.getArgumentTypes() != TypeRange(arguments) ||
      terminator->getOperandTypes() != TypeRange(elements))
    return op->emitOpError("has a region that does not combine two of each source");
  return success();
}

LogicalResult ReduceOp::verify() {
  int64_t axis = getAxisAttr().getInt();
  if (getSrcs().empty() || getSrcs().size() != getNumResults())
    return emitOpError("has ") << getSrcs().size() << " sources and " << getNumResults() << " results";
  SmallVector<Type> elements;
  for (auto [source, result] : llvm::zip_equal(getSrcs(), getResults())) {
    auto type = cast<RankedTensorType>(source.getType());
    if (axis < 0 || axis >= type.getRank())
      return emitOpError("has axis ") << axis << ", which " << type << " has not";
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + axis);
    Type expected = shape.empty() ? type.getElementType() : RankedTensorType::get(shape, type.getElementType());
    if (result.getType() != expected)
      return emitOpError("gives ") << result.getType() << " of " << type << " along axis " << axis;
    if (type.getShape() != cast<RankedTensorType>(getSrcs().front().getType()).getShape())
      return emitOpError("has sources of different shapes");
    elements.push_back(type.getElementType());
  }
  return verifyCombination<ReduceReturnOp>(*this, getCombineOp().front(), elements);
}

LogicalResult ScanOp::verify() {
  int64_t axis = getAxisAttr().getInt();
  if (getSrcs().empty() || getSrcs().getTypes() != getResults().getTypes())
    return emitOpError("has sources and results of different types");
  SmallVector<Type> elements;
  for (Value source : getSrcs()) {
    auto type = cast<RankedTensorType>(source.getType());
    if (axis < 0 || axis >= type.getRank())
      return emitOpError("has axis ") << axis << ", which " << type << " has not";
    if (type.getShape() != cast<RankedTensorType>(getSrcs().front().getType()).getShape())
      return emitOpError("has sources of different shapes");
    elements.push_back(type.getElementType());
  }
  return verifyCombination<ScanReturnOp>(*this, getCombineOp().front(), elements);
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto c = cast<RankedTensorType>(getType());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2 || a.getDimSize(1) != b.getDimSize(0) ||
      c.getDimSize(0) != a.getDimSize(0) || c.getDimSize(1) != b.getDimSize(1))
    return emitOpError("does not multiply ") << a << " by " << b << " to " << c;
  if (a.getElementType() != b.getElementType())
    return emitOpError("has operands of different elements");
  if (llvm::any_of(llvm::concat<const int64_t>(a.getShape(), c.getShape()), [](int64_t size) { return size < 16; }))
    return emitOpError("has a size below 16");
  return success();
}
