// A CUDA driver that executes nothing: every call succeeds, or fails if STUB_DRIVER_FAILS names it. What was loaded and
// launched is written to the file STUB_DRIVER_LOG, launches with as many parameters as STUB_DRIVER_PARAMETERS says.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned count;
} Config;

static void say(const char *format, ...) {
  static FILE *file;
  const char *path = getenv("STUB_DRIVER_LOG");
  if (!file && (!path || !(file = fopen(path, "a"))))
    return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fflush(file);
}

static int fails(const char *name) {
  const char *bad = getenv("STUB_DRIVER_FAILS");
  return bad && !strcmp(bad, name) ? 700 : 0;
}

int cuInit(unsigned flags) { return fails("cuInit"); }

int cuDeviceGet(int *device, int number) {
  *device = number;
  return 0;
}

// A chip of compute capability 9.0 with 227 KiB of shared memory.
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 97 ? 232448 : 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)0x11;
  return 0;
}

static void *current;

int cuCtxGetCurrent(void **context) {
  *context = current;
  return 0;
}

int cuCtxPushCurrent_v2(void *context) {
  current = context;
  return 0;
}

int cuCtxPopCurrent_v2(void **context) {
  *context = current;
  current = 0;
  return 0;
}

int cuModuleLoadData(void **module, const void *image) {
  *module = (void *)0x22;
  say("module %02x%.3s\n", *(const unsigned char *)image, (const char *)image + 1);
  return fails("cuModuleLoadData");
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = strdup(name);
  say("function %s\n", name);
  return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  say("attribute %d %d\n", attribute, value);
  return 0;
}

int cuGetErrorName(int error, const char **text) {
  *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
  return 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = "an illegal memory access was encountered";
  return 0;
}

int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
  say("launch %s %u %u %u %u %u %u %u %p %u", (char *)function, config->grid[0], config->grid[1], config->grid[2],
      config->block[0], config->block[1], config->block[2], config->shared, config->stream, config->count);
  const char *count = getenv("STUB_DRIVER_PARAMETERS");
  for (int i = 0; count && i < atoi(count); ++i)
    say(" %llx", *(unsigned long long *)parameters[i]);
  say("\n");
  return fails("cuLaunchKernelEx");
}
