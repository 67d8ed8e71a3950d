// The scalar intrinsics of tensor programs: one row each, which the interpreter, the constant folder, the code
// generator, the parser and the verifier read. All are pure and work lane by lane on vectors.
#pragma once
#include "ir/expr.h"

namespace relaxc {

struct Intrinsic {
  const char* name;  // "tir.exp"; T.exp in text
  int arity;
  enum class Result : uint8_t { kSame, kBool } result;  // the first argument's dtype, or bool
  const char* libm;  // the C function that defines the value on float64 (and, with an f appended, on float32); or null
  double (*eval)(double a, double b, double c);  // the value on floats; integers where integer is set
  int64_t (*integer)(int64_t a, DType dtype);    // the value on integers; null: floats only
  const char* doc;
};

// Finds a row by its name; the rows are sorted. tir.if_then_else has no row: it evaluates one side only.
const Intrinsic* find_intrinsic(std::string_view name);
std::span<const Intrinsic> intrinsics();

// Builtins are calls whose meaning is defined by memory, threads, the runtime, other functions or a processor's
// instructions. They can be read, printed and verified; few can be computed (see the rooms that run programs).
struct Builtin {
  std::string_view name;  // "tir.tvm_access_ptr"
  int least, most;        // numbers of arguments; most < 0: no limit
  // The dtype of the call's result: that of argument 0 or 1, a fixed one, or one that the text states as an argument.
  enum class Result : uint8_t { kSame, kSecond, kBool, kInt32, kUInt32, kHandle, kVoid, kStatedFirst, kStatedLast };
  Result result;
  bool pure;
};

// Finds a row by its name; the rows are sorted.
const Builtin* find_builtin(std::string_view name);
std::span<const Builtin> builtins();
// Returns the name after `T.` in text: "call_packed" for tir.tvm_call_packed.
std::string_view spelling(const Builtin& row);
// Returns the dtype of a call with these arguments; nullopt when the text states it.
std::optional<DType> natural_dtype(const Builtin& row, std::span<const Expr> args);

// Returns whether the node is a call that may do more than compute a value: of a function, of a builtin with an effect,
// or of an operator that has no row here.
bool is_call_with_effect(const NodeRef& node);

// What quantizes: a conversion of its result to an integer that has the bounds is one instruction.
inline constexpr OpName kRoundWithin{"tir.round_within"};

// `A.elem_offset` where the buffer's type leaves it open.
inline constexpr const char* kBufferElemOffset = "tir.buffer_elem_offset";
// Returns the pointer to a buffer's memory, `A.data`: a call of tir.buffer_data on the buffer.
Expr buffer_data(const Buffer& buffer, const Span& span = {});

// Returns whether the expression is T.vscale(), cast or not: the length of the machine's scalable vectors as a multiple
// of their minimum length. Index arithmetic treats it like a dim.
bool is_vscale(const Expr& expr);

}  // namespace relaxc
