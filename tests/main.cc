// The one test binary. Tests are found by Catch2; tests/CMakeLists.txt makes one ctest entry of each file.
#define CATCH_CONFIG_RUNNER
#include <cstdlib>
#include <new>

#include "tests/allocations.h"

#include "tests/catch.h"

namespace {
thread_local int64_t g_allocations = 0;
}

int64_t relaxc::test::heap_allocations() { return g_allocations; }

void* operator new(size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
// Standard libraries may have a form of their own of this one, whose memory is not malloc's.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  setenv("RELAXC_CACHE", "", 1);  // the cache of artifacts is the user's, and would hide compilations
  return Catch::Session().run(argc, argv);
}
