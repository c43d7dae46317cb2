// Permission to use the matrix unit.
#include "lib/Target/CPU/MatrixUnit.h"
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

bool lamina::cpu::requestMatrixUnit() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023 /*ARCH_REQ_XCOMP_PERM*/, kTileData = 18 /*XFEATURE_XTILEDATA*/;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}
