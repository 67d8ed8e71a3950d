// The rows that a loop stacks: made in their places where these are aligned, else copied there.
#include "vm/row_stack.h"

#include "tests/catch.h"

using namespace relaxc;
using namespace relaxc::vm;

namespace {

Tensor rows_of(MemoryPool& memory, int64_t count, int64_t length) {
  Shape shape = {count, length};
  std::shared_ptr<void> block = memory.allocate(count * length * 4);
  void* data = block.get();
  return Tensor::view(std::move(shape), kFloat32, data, std::move(block));
}
Tensor row_with(MemoryPool& memory, int64_t length, float value) {
  Tensor row = rows_of(memory, 1, length).reshaped(Shape{length});
  for (int64_t i = 0; i < length; ++i) row.set_double(i, value);
  return row;
}

}  // namespace

TEST_CASE("rows are made in their places", "[vm]") {
  MemoryPool memory;
  Tensor rows = rows_of(memory, 2, 16);
  RowStack stack(rows);
  for (float value : {1.0F, 2.0F}) {
    const Tensor* place = stack.next();
    REQUIRE(place != nullptr);
    CHECK(place->shape() == Shape{16});
    for (int64_t i = 0; i < 16; ++i) place->set_double(i, value);
    stack.push(*place, memory);
  }
  CHECK(stack.next() == nullptr);  // there is no third row
  CHECK(stack.finish().raw() == rows.raw());
  CHECK(stack.finish().as_double(15) == 1);
  CHECK(stack.finish().as_double(16) == 2);
}

TEST_CASE("a row that is made elsewhere is copied, and the place stays that of the row", "[vm]") {
  MemoryPool memory;
  RowStack stack(rows_of(memory, 2, 16));
  Tensor first = *stack.next();
  stack.push(row_with(memory, 16, 3), memory);
  CHECK(first.as_double(0) == 3);
  CHECK(stack.next()->raw() != first.raw());
  stack.push(first, memory);  // the row before is not the place of this one
  CHECK(stack.finish().as_double(16) == 3);
}

TEST_CASE("rows without an aligned place, or whose size is not known, are copied", "[vm]") {
  MemoryPool memory;
  RowStack unaligned(rows_of(memory, 2, 15)), unknown(rows_of(memory, 0, 0));
  CHECK(unaligned.next() == nullptr);
  for (RowStack* stack : {&unaligned, &unknown}) {
    CHECK(stack->next() == nullptr);
    stack->push(row_with(memory, 15, 4), memory);
    CHECK(stack->finish().as_double(14) == 4);
  }
  RowStack grown(rows_of(memory, 0, 0));  // the first row tells the size, and further ones have places
  grown.push(row_with(memory, 16, 5), memory);
  REQUIRE(grown.next() != nullptr);
  CHECK(grown.next()->shape() == Shape{16});
}
