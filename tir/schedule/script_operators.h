// Operators on the values of a script. Internal to tir/schedule/script.cc.
#pragma once
#include <cmath>

#include "ir/expr.h"
#include "support/checked_math.h"
#include "support/lists.h"

namespace relaxc {

// An operator on two known numbers. `on_floats` computes it when one of them is a float, or the operator is /.
struct ScriptOperator {
  std::string_view symbol;
  BinaryOp op;
  AttrValue (*on_floats)(double, double);
  std::optional<int64_t> (*checked)(int64_t, int64_t) = nullptr;  // of operators whose results may overflow
};

inline const ScriptOperator* find_operator(std::string_view symbol) {
  using D = double;
  static constexpr ScriptOperator kRows[] = {
      {"+", BinaryOp::kAdd, [](D a, D b) -> AttrValue { return a + b; }, checked_add},
      {"-", BinaryOp::kSub, [](D a, D b) -> AttrValue { return a - b; }, checked_sub},
      {"*", BinaryOp::kMul, [](D a, D b) -> AttrValue { return a * b; }, checked_mul},
      {"/", BinaryOp::kDiv, [](D a, D b) -> AttrValue { return a / b; }},
      {"//", BinaryOp::kFloorDiv, [](D a, D b) -> AttrValue { return std::floor(a / b); }},
      {"%", BinaryOp::kFloorMod, [](D a, D b) -> AttrValue { return a - std::floor(a / b) * b; }},
      {"<", BinaryOp::kLT, [](D a, D b) -> AttrValue { return a < b; }},
      {"<=", BinaryOp::kLE, [](D a, D b) -> AttrValue { return a <= b; }},
      {">", BinaryOp::kGT, [](D a, D b) -> AttrValue { return a > b; }},
      {">=", BinaryOp::kGE, [](D a, D b) -> AttrValue { return a >= b; }},
      {"==", BinaryOp::kEQ, [](D a, D b) -> AttrValue { return a == b; }},
      {"!=", BinaryOp::kNE, [](D a, D b) -> AttrValue { return a != b; }},
  };
  return find_item(kRows, symbol, &ScriptOperator::symbol);
}

// Returns a number or flag that is known, else the expression.
inline AttrValue known_number(const Expr& e) {
  auto number = as_int(e);
  if (!number) return e;
  return dtype_of(e).is_bool() ? AttrValue(*number != 0) : AttrValue(*number);
}

}  // namespace relaxc
