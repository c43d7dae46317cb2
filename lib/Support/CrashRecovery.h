// Running compiler code so that an assertion, a bad access or an exhausted stack in it does not end the process.
#ifndef LAMINA_SUPPORT_CRASHRECOVERY_H
#define LAMINA_SUPPORT_CRASHRECOVERY_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace lamina {

/// Runs `work` on a thread of its own, with a stack for recursion as deep as a program may ask for, and returns false
/// if it crashed; `message` is then what LLVM gave as the reason, if anything. Threads that `work` starts are not
/// covered unless they call this too, and only during the call do the signals have other handlers than before. After a
/// crash no destructor between has run: what `work` changed (for MLIR, the whole context) must not be used again.
bool runSafely(llvm::function_ref<void()> work, std::string *message = nullptr);

} // namespace lamina
#endif
