// Objects loaded into this process, and calls of their functions.
#ifndef LAMINA_TARGET_CPU_EXECUTABLE_H
#define LAMINA_TARGET_CPU_EXECUTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace lamina::cpu {

class Executable {
public:
  /// Links the objects with each other, with the functions of Runtime.h and with what the process has (libm).
  static llvm::Expected<std::unique_ptr<Executable>> load(llvm::ArrayRef<std::string> objects);
  ~Executable();

  /// The address of a function; links what it needs at the first call.
  llvm::Expected<void *> lookup(llvm::StringRef name);

private:
  explicit Executable(std::unique_ptr<llvm::orc::LLJIT> jit);
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace lamina::cpu
#endif
