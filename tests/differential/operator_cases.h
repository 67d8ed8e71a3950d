// Cases of the differential test: how to build a call of an operator, and the lists of cases by group.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/arith.h"
#include "tests/differential/differential.h"

namespace relaxc::test::operator_cases {

constexpr DType kInt8 = DType::int_(8), kInt16 = DType::int_(16), kUInt8 = DType::uint(8), kUInt32 = DType::uint(32),
                kUInt64 = DType::uint(64), kFloat16 = DType::float_(16), kBFloat16 = DType::bfloat16();

using List = std::vector<int64_t>;

inline const Contents kAny{.special = true};
inline const Contents kPositive{.low = 0.125, .high = 4};
inline const Contents kUnit{.low = -1, .high = 1};
inline const Contents kSmallOperands{.low = -2, .high = 2};

// Name of the operator without "relax.", and what else tells the case.
inline Case op_case(std::string op, std::string suffix, std::function<std::vector<Expr>(Graph&)> args, Attrs attrs = {},
                    Sizes least = {}, double tolerance = -1) {
  Case result;
  result.name = suffix.empty() ? op : op + " " + suffix;
  result.build = [op, args, attrs](Graph& g) { return g.op(op, args(g), attrs); };
  result.least = std::move(least);
  result.tolerance = tolerance;
  return result;
}
// An operator with several results.
inline Case tuple_case(std::string op, std::string suffix, int64_t count, std::function<std::vector<Expr>(Graph&)> args,
                       Attrs attrs = {}, Sizes least = {}) {
  Case result = op_case(op, suffix, args, attrs, std::move(least));
  result.build = [op, args, attrs, count](Graph& g) -> Expr {
    Expr all = g.op(op, args(g), attrs);
    std::vector<Expr> items;
    for (int64_t i = 0; i < count; ++i) items.push_back(g.item(all, i));
    return tuple(items);
  };
  return result;
}
inline auto one(std::string dims, DType dtype = kFloat32, Contents contents = {}) {
  return [=](Graph& g) { return std::vector<Expr>{g.input(dims, dtype, contents)}; };
}
inline auto two(std::string a, std::string b, DType dtype = kFloat32, Contents contents_a = {},
                Contents contents_b = {}) {
  return [=](Graph& g) { return std::vector<Expr>{g.input(a, dtype, contents_a), g.input(b, dtype, contents_b)}; };
}

void add_elementwise(std::vector<Case>& cases);
void add_reductions(std::vector<Case>& cases);
void add_contractions(std::vector<Case>& cases);
void add_windows(std::vector<Case>& cases);
void add_normalizations(std::vector<Case>& cases);
void add_layouts(std::vector<Case>& cases);
void add_splits_and_pads(std::vector<Case>& cases);
void add_indexing(std::vector<Case>& cases);
void add_creation(std::vector<Case>& cases);
void add_images(std::vector<Case>& cases);

}  // namespace relaxc::test::operator_cases
