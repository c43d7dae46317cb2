// Giving back the memory pages of the compiler's own libraries.
#ifndef LAMINA_SUPPORT_RESIDENTPAGES_H
#define LAMINA_SUPPORT_RESIDENTPAGES_H

namespace lamina {

/// Unmaps the read-only pages of MLIR, LLVM and Lamina that this process has touched: code, constants, and the symbol
/// tables that only the loader reads. Over 100 MB of them are resident after a compile, and nothing needs them until
/// the next one, or until another phase of the same one, which touches other pages.
///
/// What is touched again is mapped again from the system's page cache, 64 KiB at a time, so it may be called at any
/// time, also while other threads run this code. It takes about two milliseconds at most. It does nothing in a process
/// that is being traced, as a debugger's breakpoints are in copies of such pages.
void releaseResidentPages();

} // namespace lamina
#endif
