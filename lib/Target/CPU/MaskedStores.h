// Masked stores that LLVM's code generation for x86 gets wrong.
#ifndef LAMINA_TARGET_CPU_MASKED_STORES_H
#define LAMINA_TARGET_CPU_MASKED_STORES_H

namespace llvm {
class Module;
} // namespace llvm

namespace lamina::cpu {

/// Makes scalar stores of the masked stores whose constant mask has one lane. Where the value is truncated, LLVM 22
/// makes one of the wide element, which overwrites what follows.
void replaceStoresOfOneLane(llvm::Module &module);

} // namespace lamina::cpu
#endif
