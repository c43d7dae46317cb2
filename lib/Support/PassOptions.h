// Checks of the values of pass options, for Pass::initialize: a wrong one is a diagnostic before anything runs.
#ifndef LAMINA_SUPPORT_PASSOPTIONS_H
#define LAMINA_SUPPORT_PASSOPTIONS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <initializer_list>
#include <type_traits>

namespace lamina {

/// The options of one pass, whose values are checked one after the other; the first wrong one is reported.
class OptionCheck {
public:
  OptionCheck(const mlir::Pass &pass, mlir::MLIRContext *context) : pass(pass), context(context) {}

  template <typename Option> OptionCheck &atLeast(Option &option, int64_t least) {
    return check(option, [&](int64_t value) { return value >= least; }, "at least " + llvm::Twine(least));
  }
  template <typename Option> OptionCheck &powerOfTwo(Option &option) {
    return check(option, [](int64_t value) { return value > 0 && llvm::isPowerOf2_64(value); }, "a power of two");
  }
  /// `what` is the list of `values` as a reader would say it.
  template <typename Option>
  OptionCheck &oneOf(Option &option, std::initializer_list<int64_t> values, llvm::StringRef what) {
    return check(option, [&](int64_t value) { return llvm::is_contained(values, value); }, what);
  }
  operator llvm::LogicalResult() const { return result; }

private:
  template <typename Option>
  OptionCheck &check(Option &option, llvm::function_ref<bool(int64_t)> holds, const llvm::Twine &what) {
    auto checkValue = [&](int64_t value) {
      if (failed(result) || holds(value))
        return;
      result = mlir::emitError(mlir::UnknownLoc::get(context))
               << pass.getArgument() << ": " << option.ArgStr << " is " << value << ", which is not " << what;
    };
    if constexpr (std::is_convertible_v<Option &, int64_t>)
      checkValue(option);
    else
      llvm::for_each(*option, checkValue);
    return *this;
  }

  const mlir::Pass &pass;
  mlir::MLIRContext *context;
  llvm::LogicalResult result = llvm::success();
};

} // namespace lamina
#endif
