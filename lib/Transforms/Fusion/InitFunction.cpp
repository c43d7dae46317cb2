// InitFunction: the function @init, which computes constants of @main once.
#include "lib/Transforms/Fusion/InitFunction.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lamina;

/// Constants that @init makes are named by the position among its results.
static constexpr llvm::StringLiteral kInitPrefix = "init.";

/// Which result of @init an argument of @main is, if it is one.
static std::optional<unsigned> getInitResult(func::FuncOp main, unsigned argument) {
  auto key = main.getArgAttrOfType<StringAttr>(argument, kConstantAttr);
  unsigned index;
  if (!key || !key.getValue().starts_with(kInitPrefix) ||
      key.getValue().drop_front(kInitPrefix.size()).getAsInteger(10, index))
    return std::nullopt;
  return index;
}

LogicalResult InitFunction::check(func::FuncOp main) {
  Operation *symbol = main->getParentOfType<ModuleOp>().lookupSymbol("init");
  auto init = dyn_cast_or_null<func::FuncOp>(symbol);
  if (symbol && (!init || !init.getBody().hasOneBlock()))
    return symbol->emitOpError("is no function of one block; @init is the one that computes constants of @main");
  Operation *terminator = init ? init.getBody().front().getTerminator() : nullptr;
  for (unsigned i = 0; init && i < init.getNumArguments(); ++i)
    if (!init.getArgAttr(i, kConstantAttr))
      return init.emitOpError("argument ") << i << " has no " << kConstantAttr << "; @init computes constants of @main";
  for (BlockArgument argument : main.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (isConstantArgument(argument) && !isa<RankedTensorType>(argument.getType()))
      return main.emitOpError("argument ") << number << " is a constant, but no ranked tensor";
    std::optional<unsigned> index = getInitResult(main, number);
    if (index && (!init || *index >= terminator->getNumOperands() ||
                  terminator->getOperand(*index).getType() != argument.getType()))
      return main.emitOpError("argument ")
             << number << " is result " << *index << " of @init, which has none of that number and type";
  }
  return success();
}

InitFunction::InitFunction(func::FuncOp main) : main(main) {
  init = main->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>("init");
  if (!init)
    return;
  Operation *terminator = init.getBody().front().getTerminator();
  for (BlockArgument argument : main.getArguments())
    if (std::optional<unsigned> index = getInitResult(main, argument.getArgNumber()))
      results[terminator->getOperand(*index)] = argument;
}

bool InitFunction::isConstantArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return func && func.getArgAttr(argument.getArgNumber(), kConstantAttr);
}

func::FuncOp InitFunction::getOrCreate() {
  if (init)
    return init;
  OpBuilder builder(main);
  init = func::FuncOp::create(builder, main.getLoc(), "init", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(init.addEntryBlock());
  func::ReturnOp::create(builder, main.getLoc());
  return init;
}

OpBuilder InitFunction::builder() { return OpBuilder(getOrCreate().getBody().front().getTerminator()); }

Value InitFunction::valueOf(BlockArgument argument) {
  for (auto [value, mine] : results)
    if (mine == argument)
      return value;
  func::FuncOp func = getOrCreate();
  auto key = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kConstantAttr);
  for (BlockArgument mine : func.getArguments())
    if (func.getArgAttr(mine.getArgNumber(), kConstantAttr) == key)
      return mine;
  unsigned index = func.getNumArguments();
  auto attrs = DictionaryAttr::get(main.getContext(), {{StringAttr::get(main.getContext(), kConstantAttr), key}});
  (void)func.insertArgument(index, argument.getType(), attrs, argument.getLoc());
  return func.getArgument(index);
}

Value InitFunction::unique(Operation *op) {
  if (op->getNumOperands())
    for (Operation *other : op->getOperand(0).getUsers())
      if (other != op && OperationEquivalence::isEquivalentTo(other, op, OperationEquivalence::exactValueMatch, nullptr,
                                                              OperationEquivalence::IgnoreLocations)) {
        op->erase();
        return other->getResult(0);
      }
  return op->getResult(0);
}

BlockArgument InitFunction::addResult(Value value) {
  if (BlockArgument known = results.lookup(value))
    return known;
  Operation *terminator = init.getBody().front().getTerminator();
  unsigned index = terminator->getNumOperands();
  terminator->insertOperands(index, value);
  init.setFunctionType(FunctionType::get(init.getContext(), init.getArgumentTypes(), terminator->getOperandTypes()));
  auto key = StringAttr::get(main.getContext(), kInitPrefix + Twine(index));
  auto attrs = DictionaryAttr::get(main.getContext(), {{StringAttr::get(main.getContext(), kConstantAttr), key}});
  unsigned number = main.getNumArguments();
  (void)main.insertArgument(number, value.getType(), attrs, value.getLoc());
  return results[value] = main.getArgument(number);
}

void InitFunction::finish() {
  // A result of @init that @main does not read goes too, so that nothing is computed in vain.
  llvm::BitVector unused(main.getNumArguments());
  for (BlockArgument argument : main.getArguments())
    if (argument.use_empty() && isConstantArgument(argument))
      unused.set(argument.getArgNumber());
  (void)main.eraseArguments(unused);
  if (!init)
    return;
  Operation *terminator = init.getBody().front().getTerminator();
  SmallVector<Value> kept;
  for (BlockArgument argument : main.getArguments()) {
    std::optional<unsigned> index = getInitResult(main, argument.getArgNumber());
    if (!index)
      continue;
    main.setArgAttr(argument.getArgNumber(), kConstantAttr,
                    StringAttr::get(main.getContext(), kInitPrefix + Twine(kept.size())));
    kept.push_back(terminator->getOperand(*index));
  }
  terminator->setOperands(kept);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(init.getBody().front().without_terminator())))
    if (op.use_empty())
      op.erase();
  llvm::BitVector unread(init.getNumArguments());
  for (BlockArgument argument : init.getArguments())
    if (argument.use_empty())
      unread.set(argument.getArgNumber());
  (void)init.eraseArguments(unread);
  init.setFunctionType(FunctionType::get(init.getContext(), init.getArgumentTypes(), terminator->getOperandTypes()));
  if (kept.empty())
    init.erase();
}
