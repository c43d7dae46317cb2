// RUN: lamina-opt %s --lamina-expand-bools | FileCheck %s

// CHECK-LABEL: func.func @copy
// CHECK-SAME: %[[SOURCE:.*]]: memref<?xi1, strided<[1], offset: ?>>, %[[TARGET:.*]]: memref<4xi1>, %[[I:.*]]: index
// CHECK: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %[[SOURCE]] : {{.*}} to memref<?xi8, strided<[1], offset: ?>>
// CHECK: %[[BYTE:.*]] = memref.load %[[BYTES]][%[[I]]]
// CHECK: %[[BOOL:.*]] = arith.cmpi ne, %[[BYTE]], %{{.*}} : i8
// CHECK: %[[WIDE:.*]] = arith.extui %[[BOOL]] : i1 to i8
// CHECK: %[[OUT:.*]] = builtin.unrealized_conversion_cast %[[TARGET]] : memref<4xi1> to memref<4xi8>
// CHECK: memref.store %[[WIDE]], %[[OUT]][%[[I]]]
func.func @copy(%source: memref<?xi1, strided<[1], offset: ?>>, %target: memref<4xi1>, %i: index) {
  %0 = memref.load %source[%i] : memref<?xi1, strided<[1], offset: ?>>
  memref.store %0, %target[%i] : memref<4xi1>
  return
}

// CHECK-LABEL: func.func @wider
// CHECK-NOT: cast
// CHECK: memref.load {{.*}} : memref<4xi8>
func.func @wider(%source: memref<4xi8>, %i: index) -> i8 {
  %0 = memref.load %source[%i] : memref<4xi8>
  return %0 : i8
}
