// All ops of prim.
#ifndef LAMINA_PRIM_OPS_TD
#define LAMINA_PRIM_OPS_TD
include "dialects/Prim/ElementwiseOps.td"
include "dialects/Prim/ReductionOps.td"
include "dialects/Prim/ShapeOps.td"
#endif
