#include "tir/edit/mapped_box.h"

#include <algorithm>

namespace relaxc::scheduling {

namespace {

// Computes each source from its digits in the coordinates.
std::vector<Expr> find_origins(const IterMap& map, const std::vector<VarRef>& vars, size_t rank,
                               const Analyzer& facts) {
  std::vector<Expr> result(map.sources.size(), int_imm(0));
  for (size_t s = map.sources.size(); s-- > 0;) {
    DType dtype = dtype_of(map.sources[s].value);
    Expr total = int_imm(0, dtype);
    std::vector<Expr> seen;
    auto take = [&](const std::vector<IterDigit>& digits, const Expr& from) {
      for (size_t i = 0; i < digits.size(); ++i) {
        const IterDigit& digit = digits[i];
        bool again = std::ranges::any_of(seen, [&](const Expr& e) { return structural_equal(e, digit.lower); });
        if (digit.source != s || again || is_int(digit.extent, 1)) continue;
        seen.push_back(digit.lower);
        Expr value = floor_div(cast_to(from, dtype), digit.scale);
        if (i > 0) value = floor_mod(value, digit.extent);
        if (digit.reversed) value = digit.extent - int_imm(1, dtype) - value;
        total = total + value * digit.lower;
      }
    };
    for (size_t d = 0; d < map.sums.size(); ++d) take(map.sums[d].digits, vars[d]);
    for (size_t later = std::max(s + 1, rank); later < map.sources.size(); ++later)
      take(map.sources[later].parts, result[later]);
    result[s] = facts.simplify(total);
  }
  result.resize(rank, int_imm(0));
  return result;
}

}  // namespace

std::optional<MappedBox> map_box(Tree& tree, const std::vector<LoopRange>& positions, const std::vector<Expr>& images,
                                 std::string* why) {
  std::optional<IterMap> found = find_injective_map(images, positions, {}, tree.facts, why);
  if (!found) return std::nullopt;
  MappedBox box;
  for (const IterSum& sum : found->sums) {
    if (!is_int(tree.facts.simplify(sum.base), 0)) {
      if (why) *why = message("result {} of the map does not start at 0", box.extents.size());
      return std::nullopt;
    }
    box.extents.push_back(sum.extent);
    box.vars.push_back(make_var(fmt::format("v{}", box.vars.size()), prim_type(dtype_of(sum.extent))));
    tree.facts.bind(box.vars.back(), int_imm(0, dtype_of(sum.extent)), sum.extent);
  }
  box.origins = find_origins(*found, box.vars, positions.size(), tree.facts);
  // A one-to-one map with as many coordinates as positions reaches all of them. Where a dim is 0 the counts agree, too,
  // but the other dims still have to fit each other: inits and windows know only some of them.
  Expr num_positions = int_imm(1), num_coordinates = num_positions;
  VarMap origins;
  for (size_t i = 0; i < positions.size(); ++i) {
    num_positions = num_positions * cast_to(positions[i].range.extent, kInt64);
    origins.emplace(positions[i].var.get(), box.origins[i]);
  }
  for (const Expr& extent : box.extents) num_coordinates = num_coordinates * cast_to(extent, kInt64);
  num_positions = tree.facts.simplify(num_positions);
  if (!is_int(num_positions, 0) && tree.facts.can_prove_equal(num_positions, num_coordinates)) return box;
  for (size_t i = 0; i < positions.size(); ++i) {
    Expr inside = tree.facts.simplify(box.origins[i] < positions[i].range.extent);
    if (!tree.facts.can_prove(inside)) box.conditions.push_back(inside);
  }
  for (size_t d = 0; d < images.size(); ++d) {
    Expr image = substitute(images[d], origins);
    if (!tree.facts.can_prove_equal(image, box.vars[d]))
      box.conditions.push_back(equal(tree.facts.simplify(image), box.vars[d]));
  }
  return box;
}

std::optional<MappedBox> map_box(Tree& tree, const std::vector<IterVar>& axes, const std::vector<Expr>& images,
                                 std::string* why) {
  auto as_loop = [](const IterVar& axis) { return LoopRange{axis.var, axis.domain}; };
  return map_box(tree, map_each(axes, as_loop), images, why);
}

}  // namespace relaxc::scheduling
