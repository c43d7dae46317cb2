// Combiners of reductions: their identities.
#include "dialects/Prim/Combiners.h"

using namespace mlir;
using namespace lamina;
using namespace lamina::prim;

/// The identity of a combiner is a number, or the lowest or highest value.
enum class Identity { Zero, One, Lowest, Highest, AllOnes };
static constexpr Identity kIdentities[] = {Identity::Zero,    Identity::One,  Identity::Lowest,
                                           Identity::Highest, Identity::Zero, Identity::AllOnes};

TypedAttr prim::getIdentity(Combiner combiner, Type type) {
  Identity identity = kIdentities[static_cast<unsigned>(combiner)];
  if (auto floatType = dyn_cast<FloatType>(type)) {
    if (identity == Identity::Lowest || identity == Identity::Highest)
      return FloatAttr::get(type, APFloat::getInf(floatType.getFloatSemantics(), identity == Identity::Lowest));
    return FloatAttr::get(type, identity == Identity::One ? 1.0 : 0.0);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger() || width == 1;
  auto get = [&](const APInt &value) { return IntegerAttr::get(type, value); };
  switch (identity) {
  case Identity::Zero:
    return get(APInt::getZero(width));
  case Identity::One:
    return get(APInt(width, 1));
  case Identity::Lowest:
    return get(isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width));
  case Identity::Highest:
    return get(isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  case Identity::AllOnes:
    return get(APInt::getAllOnes(width));
  }
  llvm_unreachable("all identities are listed");
}
