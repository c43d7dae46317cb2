/* The C API of Lamina: what the Python extension is built on. */
#ifndef LAMINA_CAPI_H
#define LAMINA_CAPI_H

#include "mlir-c/IR.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Registers and loads Lamina's dialects in a context. */
void laminaRegisterDialects(MlirContext context);
/** Registers Lamina's passes; calls after the first do nothing. */
void laminaRegisterPasses(void);

/** Unmaps the pages of the compiler's code that were touched; see lib/Support/ResidentPages.h. */
void laminaReleaseResidentPages(void);

/** How a call ended; the error callback gets the message of the last two. After a crash the MLIR context of the call
 * must not be used again. */
typedef enum { LaminaSuccess = 0, LaminaFailure = 1, LaminaCrash = 2 } LaminaStatus;

/** Runs a textual pass pipeline on an operation. */
LaminaStatus laminaRunPipeline(MlirOperation op, MlirStringRef pipeline, MlirStringCallback error, void *errorData);
/** Parses a module; `name` is the file name of its locations. */
LaminaStatus laminaParseModule(MlirContext context, MlirStringRef text, MlirStringRef name, MlirModule *result,
                               MlirStringCallback error, void *errorData);

/* ---- CPU */

typedef struct {
  MlirStringRef cpu;      /* empty: the host */
  MlirStringRef features; /* "+a,-b", all of them */
  int level;              /* 0, 1, 2 or 3 */
  int vectorWidth;        /* bits; 0: chosen from the features */
  int threads;            /* 0: one for each hardware thread */
} LaminaCompileOptions;

/** The name and the features of the host's processor; the strings live as long as the process. */
void laminaHostProcessor(MlirStringRef *name, MlirStringRef *features);
/** LLVM IR ("llvm") or assembly ("asm") text, or one object ("obj"), of a module in the LLVM dialect. */
LaminaStatus laminaEmit(MlirModule module, MlirStringRef kind, const LaminaCompileOptions *options,
                        MlirStringCallback result, void *resultData, MlirStringCallback error, void *errorData);
/** The objects of a module in the LLVM dialect, one call of `result` for each. */
LaminaStatus laminaCompileObjects(MlirModule module, const LaminaCompileOptions *options, MlirStringCallback result,
                                  void *resultData, MlirStringCallback error, void *errorData);

typedef struct LaminaExecutable LaminaExecutable;
/** Loads objects; null after an error. */
LaminaExecutable *laminaExecutableLoad(const MlirStringRef *objects, intptr_t count, MlirStringCallback error,
                                       void *errorData);
void laminaExecutableDestroy(LaminaExecutable *executable);
/** The address of a function; null after an error. */
void *laminaExecutableLookup(LaminaExecutable *executable, MlirStringRef name, MlirStringCallback error,
                             void *errorData);

#ifdef __cplusplus
}
#endif
#endif
