// Counts what the tests' process takes from the heap (tests/main.cc replaces operator new).
#pragma once
#include <cstdint>

namespace relaxc::test {

// Returns how often this thread has called operator new.
int64_t heap_allocations();

}  // namespace relaxc::test
