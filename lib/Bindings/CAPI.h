/* The C API of Lamina: what the Python extension is built on. */
#ifndef LAMINA_CAPI_H
#define LAMINA_CAPI_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Registers and loads Lamina's dialects in a context. */
void laminaRegisterDialects(MlirContext context);
/** Registers Lamina's passes; calls after the first do nothing. */
void laminaRegisterPasses(void);

#ifdef __cplusplus
}
#endif
#endif
