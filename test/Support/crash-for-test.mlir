// lamina-crash-for-test: with `error` a diagnostic, otherwise a crash.
// RUN: not lamina-opt %s --lamina-crash-for-test=kind=error 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not --crash lamina-opt %s --lamina-crash-for-test=kind=assert
// RUN: not --crash lamina-opt %s --lamina-crash-for-test=kind=segfault
// ERROR: error:
func.func private @nothing()
