// The scalar intrinsics of tensor programs: one row each; the interpreter, the constant folder, the code generator, the
// parser and the verifier read it. All are pure and work lane by lane on vectors.
#pragma once
#include <optional>
#include <string_view>

#include "ir/expr.h"

namespace relaxc {

struct Intrinsic {
  const char* name;  // "tir.exp"; T.exp in text
  int arity;
  enum class Result : uint8_t { kSame, kBool } result;  // the first argument's dtype, or bool
  const char* libm;  // the C function that defines the value on float64 (and, with an f appended, on float32); or null
  double (*eval)(double a, double b, double c);  // the value on floats; integers where integer is set
  int64_t (*integer)(int64_t a);                 // the value on integers; null: floats only
  const char* doc;
};

// Rows sorted by name. tir.if_then_else is not among them: it evaluates one side only.
const Intrinsic* find_intrinsic(std::string_view name);
std::span<const Intrinsic> intrinsics();

}  // namespace relaxc
