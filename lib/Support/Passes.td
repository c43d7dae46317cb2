// Passes for the tests of Lamina itself.
#ifndef LAMINA_SUPPORT_PASSES_TD
#define LAMINA_SUPPORT_PASSES_TD
include "mlir/Pass/PassBase.td"

def CrashForTest : Pass<"lamina-crash-for-test"> {
  let summary = "crashes, so that recovery from crashes can be tested";
  let options = [Option<"kind", "kind", "std::string", "\"assert\"",
    "assert: a failed assertion; segfault: an access through a null pointer; fatal: LLVM's fatal error, which exits; "
    "overflow: recursion without end; error: no crash, but a diagnostic">];
}
#endif
