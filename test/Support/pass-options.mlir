// Options with values that no pass can work with are diagnostics, before anything runs.
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-fuse-kernels{min-parallelism=0})' 2>&1 | FileCheck %s --check-prefix=PARALLELISM
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-fuse-kernels{size-hint=-1})' 2>&1 | FileCheck %s --check-prefix=HINT
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-fuse-kernels{pack-widths=16,0})' 2>&1 | FileCheck %s --check-prefix=WIDTHS
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-fuse-kernels{pack-tile-widths=0})' 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-fuse-kernels{pack-widths=wide})' 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions{launch-elements=-1}))' 2>&1 | FileCheck %s --check-prefix=ELEMENTS
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(kernel.func(lamina-tile-kernels{threads=0}))' 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(kernel.func(lamina-tile-kernels{vector-lanes=0}))' 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-convert-tiled-to-triton{depth=0})' 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-convert-tiled-to-triton{max-elements=3})' 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-convert-tiled-to-triton{index-bits=7})' 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-lower-contractions{vector-bits=64})' 2>&1 | FileCheck %s --check-prefix=CONTRACTION
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-lower-contractions{block-bytes=0})' 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-vectorize-loops{vector-bits=1024})' 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-vectorize-loops{unroll=0})' 2>&1 | FileCheck %s --check-prefix=UNROLL
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-lower-grid{max-stack=-1})' 2>&1 | FileCheck %s --check-prefix=STACK

// PARALLELISM: error: lamina-fuse-kernels: min-parallelism is 0, which is not at least 1
// HINT: error: lamina-fuse-kernels: size-hint is -1, which is not at least 1
// WIDTHS: error: lamina-fuse-kernels: pack-widths is 0, which is not at least 1
// TILES: error: lamina-fuse-kernels: pack-tile-widths is 0, which is not at least 1
// WORD: 'wide' value invalid
// ELEMENTS: error: lamina-split-reductions: launch-elements is -1, which is not at least 0
// THREADS: error: lamina-tile-kernels: threads is 0, which is not at least 1
// LANES: error: lamina-tile-kernels: vector-lanes is 0, which is not at least 1
// DEPTH: error: lamina-convert-tiled-to-triton: depth is 0, which is not a power of two
// BLOCK: error: lamina-convert-tiled-to-triton: max-elements is 3, which is not a power of two
// BITS: error: lamina-convert-tiled-to-triton: index-bits is 7, which is not 32 or 64
// CONTRACTION: error: lamina-lower-contractions: vector-bits is 64, which is not 512, 256 or 128
// BYTES: error: lamina-lower-contractions: block-bytes is 0, which is not at least 1
// VECTOR: error: lamina-vectorize-loops: vector-bits is 1024, which is not 512, 256 or 128
// UNROLL: error: lamina-vectorize-loops: unroll is 0, which is not at least 1
// STACK: error: lamina-lower-grid: max-stack is -1, which is not at least 0
func.func private @nothing()
