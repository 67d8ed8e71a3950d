// With OWN_ALLOCATOR a host replaces operator new, for hosts of tests that one file makes.
#pragma once
#include <cstdlib>
#include <new>

#ifdef OWN_ALLOCATOR
// Memory that free() of the C library does not take back.
void* operator new(std::size_t bytes) {
  char* memory = static_cast<char*>(std::malloc(bytes + 64));
  return memory ? memory + 64 : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory) std::free(static_cast<char*>(memory) - 64);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif
