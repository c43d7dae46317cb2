// Permission to use the matrix unit.
#ifndef LAMINA_TARGET_CPU_MATRIXUNIT_H
#define LAMINA_TARGET_CPU_MATRIXUNIT_H

namespace lamina::cpu {

/// Asks the system for the tile registers of AMX, once a process; false where there are none or it refuses.
bool requestMatrixUnit();

} // namespace lamina::cpu
#endif
