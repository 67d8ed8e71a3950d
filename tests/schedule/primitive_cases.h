// Small programs for each primitive, the program that it becomes, and a step that is refused.
#pragma once
#include <span>

namespace relaxc::test {

struct PrimitiveCase {
  const char* name;
  const char* params;        // of the function, as text
  const char* params_after;  // "": the same
  const char* before;        // the body
  const char* steps;
  const char* after;
  const char* refused;
  const char* message;
};
std::span<const PrimitiveCase> primitive_cases();

}  // namespace relaxc::test
