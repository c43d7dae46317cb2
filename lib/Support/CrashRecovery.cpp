// Running compiler code so that an assertion or a bad access in it does not end the process.
#include "lib/Support/CrashRecovery.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include <mutex>

namespace {
/// LLVM's handlers are of the process: the first of nested or concurrent users installs them, the last removes them.
class SignalHandlers {
public:
  SignalHandlers() {
    std::lock_guard<std::mutex> lock(mutex);
    if (users++ == 0)
      llvm::CrashRecoveryContext::Enable();
  }
  ~SignalHandlers() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--users == 0)
      llvm::CrashRecoveryContext::Disable();
  }

private:
  static std::mutex mutex;
  static int users;
};
std::mutex SignalHandlers::mutex;
int SignalHandlers::users = 0;
} // namespace

bool lamina::runSafely(llvm::function_ref<void()> work) {
  SignalHandlers handlers;
  llvm::CrashRecoveryContext recovery;
  return recovery.RunSafely(work);
}
