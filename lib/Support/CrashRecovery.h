// Running compiler code so that an assertion or a bad access in it does not end the process.
#ifndef LAMINA_SUPPORT_CRASHRECOVERY_H
#define LAMINA_SUPPORT_CRASHRECOVERY_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace lamina {

/// Runs `work` and returns false if it crashed. Only the calling thread is covered, and only during the call do the
/// signals have other handlers than before. After a crash no destructor between has run: what `work` changed (for MLIR,
/// the whole context) must not be used again.
bool runSafely(llvm::function_ref<void()> work);

} // namespace lamina
#endif
