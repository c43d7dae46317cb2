// Registration of the named pipelines.
#ifndef LAMINA_PIPELINES_H
#define LAMINA_PIPELINES_H

namespace lamina {
/// `lamina-cpu-to-llvm`.
void registerCPUPipelines();
} // namespace lamina
#endif
