// Unmapping the clean pages of shared libraries that are between two uses.
#include "lib/Support/ResidentPages.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#if defined(__linux__)
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(__linux__)

using namespace llvm;

namespace {

bool contains(const dl_phdr_info &library, uintptr_t address) {
  for (unsigned i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = library.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && address - (library.dlpi_addr + header.p_vaddr) < header.p_memsz)
      return true;
  }
  return false;
}

/// Whether it is Lamina's library, LLVM's or MLIR's, by a function in each; they may be in one.
bool isOwn(const dl_phdr_info &library) {
  static const void *const functions[] = {
      reinterpret_cast<void *>(&lamina::releaseResidentPages),
      reinterpret_cast<void *>(&sys::getHostCPUName),
      reinterpret_cast<void *>(&mlir::registerMLIRContextCLOptions),
  };
  return any_of(functions, [&](const void *f) { return contains(library, reinterpret_cast<uintptr_t>(f)); });
}

/// Unmaps the whole pages of a range that holds what the file holds.
void unmap(uintptr_t begin, uintptr_t size) {
  static const uintptr_t page = sysconf(_SC_PAGESIZE);
  uintptr_t first = (begin + page - 1) & ~(page - 1), end = (begin + size) & ~(page - 1);
  if (first < end)
    madvise(reinterpret_cast<void *>(first), end - first, MADV_DONTNEED);
}

/// The table of strings may lie in a writable segment, where tools that edit libraries put it; nobody writes to it.
void unmapStringTable(const dl_phdr_info &library, const ElfW(Phdr) & dynamic) {
  uintptr_t address = 0, size = 0;
  for (auto *entry = reinterpret_cast<const ElfW(Dyn) *>(library.dlpi_addr + dynamic.p_vaddr); entry->d_tag; ++entry) {
    if (entry->d_tag == DT_STRTAB)
      address = entry->d_un.d_ptr;
    else if (entry->d_tag == DT_STRSZ)
      size = entry->d_un.d_val;
  }
  // The C library may have made it an address of the process.
  unmap(address < library.dlpi_addr ? library.dlpi_addr + address : address, size);
}

int visit(dl_phdr_info *library, size_t, void *) {
  if (!isOwn(*library))
    return 0;
  for (unsigned i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = library->dlpi_phdr[i];
    // Relocated constants are part of a segment that is writable by its header, and stay.
    if (header.p_type == PT_LOAD && !(header.p_flags & PF_W))
      unmap(library->dlpi_addr + header.p_vaddr, header.p_memsz);
    else if (header.p_type == PT_DYNAMIC)
      unmapStringTable(*library, header);
  }
  return 0;
}

bool isTraced() {
  auto status = MemoryBuffer::getFileAsStream("/proc/self/status");
  if (!status)
    return false;
  StringRef value = (*status)->getBuffer().split("TracerPid:").second;
  return !value.ltrim().starts_with("0");
}

} // namespace

void lamina::releaseResidentPages() {
  if (!isTraced())
    dl_iterate_phdr(visit, nullptr);
}

#else

void lamina::releaseResidentPages() {}

#endif
