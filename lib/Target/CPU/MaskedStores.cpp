// Masked stores that LLVM's code generation for x86 gets wrong.
#include "lib/Target/CPU/MaskedStores.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

/// The lane that the mask has, if it is a constant with exactly one.
static std::optional<unsigned> getOnlyLane(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    Constant *element = constant->getAggregateElement(lane);
    if (!element || !isa<ConstantInt>(element))
      return std::nullopt;
    if (element->isNullValue())
      continue;
    if (only)
      return std::nullopt;
    only = lane;
  }
  return only;
}

void lamina::cpu::replaceStoresOfOneLane(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *store = dyn_cast<IntrinsicInst>(&instruction);
      if (!store || store->getIntrinsicID() != Intrinsic::masked_store)
        continue;
      Value *value = store->getArgOperand(0), *pointer = store->getArgOperand(1), *mask = store->getArgOperand(2);
      std::optional<unsigned> lane = getOnlyLane(mask);
      if (!lane)
        continue;
      IRBuilder<> builder(store);
      Type *type = value->getType()->getScalarType();
      Value *address = builder.CreateConstInBoundsGEP1_64(type, pointer, *lane);
      MaybeAlign given = store->getParamAlign(1);
      uint64_t offset = *lane * module.getDataLayout().getTypeAllocSize(type);
      builder.CreateAlignedStore(builder.CreateExtractElement(value, *lane), address,
                                 commonAlignment(given.valueOrOne(), offset));
      store->eraseFromParent();
    }
}
