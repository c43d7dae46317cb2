// Running compiler code so that an assertion, a bad access or an exhausted stack in it does not end the process.
#include "lib/Support/CrashRecovery.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include <csignal>
#include <memory>
#include <mutex>
#include <pthread.h>

namespace {

/// Address space, of which only what is used becomes memory.
constexpr size_t kStackBytes = size_t(512) << 20;
/// A frame larger than a page must not step over the guard.
constexpr size_t kGuardBytes = size_t(1) << 20;
constexpr size_t kSignalStackBytes = size_t(64) << 10;

/// What the running `runSafely` of this thread has been told of a fatal error.
thread_local std::string *fatalMessage;

/// LLVM exits or aborts after this returns; in a run that is covered it does not return.
void handleFatalError(void *, const char *reason, bool) {
  if (fatalMessage)
    *fatalMessage = reason;
  if (auto *recovery = llvm::CrashRecoveryContext::GetCurrent())
    recovery->HandleExit(1);
}

/// The handlers are of the process: the first of nested or concurrent users installs them, the last removes them.
class Handlers {
public:
  Handlers() {
    std::lock_guard<std::mutex> lock(mutex);
    if (users++ != 0)
      return;
    llvm::CrashRecoveryContext::Enable();
    // LLVM's handlers would run on the stack that is exhausted.
    for (int number : {SIGSEGV, SIGBUS}) {
      struct sigaction action;
      if (sigaction(number, nullptr, &action) == 0) {
        action.sa_flags |= SA_ONSTACK;
        sigaction(number, &action, nullptr);
      }
    }
    llvm::install_fatal_error_handler(handleFatalError);
  }
  ~Handlers() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--users != 0)
      return;
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }

private:
  static std::mutex mutex;
  static int users;
};
std::mutex Handlers::mutex;
int Handlers::users = 0;

struct Run {
  llvm::function_ref<void()> work;
  std::string message;
  bool finished = false;

  void operator()() {
    std::string *outer = fatalMessage;
    fatalMessage = &message;
    llvm::CrashRecoveryContext recovery;
    finished = recovery.RunSafely(work);
    fatalMessage = outer;
  }
};

void *runOnThread(void *data) {
  std::unique_ptr<char[]> memory(new char[kSignalStackBytes]);
  stack_t stack = {}, none = {};
  stack.ss_sp = memory.get();
  stack.ss_size = kSignalStackBytes;
  none.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  (*static_cast<Run *>(data))();
  sigaltstack(&none, nullptr);
  return nullptr;
}

} // namespace

bool lamina::runSafely(llvm::function_ref<void()> work, std::string *message) {
  Handlers handlers;
  Run run{work, {}};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setguardsize(&attributes, kGuardBytes);
  // Where the process may not have so much address space, the caller's own stack has to do.
  if (pthread_create(&thread, &attributes, runOnThread, &run) == 0)
    pthread_join(thread, nullptr);
  else
    run();
  pthread_attr_destroy(&attributes);
  if (message)
    *message = std::move(run.message);
  return run.finished;
}
