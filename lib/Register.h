// Registration of all dialects and passes of Lamina.
#ifndef LAMINA_REGISTER_H
#define LAMINA_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace lamina {
/// Lamina's own dialects, with their interface implementations.
void registerDialects(mlir::DialectRegistry &registry);
/// Lamina's own passes; calls after the first do nothing.
void registerPasses();
} // namespace lamina
#endif
