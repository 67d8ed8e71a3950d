#include "tir/analysis/conditions.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

constexpr int64_t kMostCopies = 8;  // of a vector statement, one after the other

// Returns whether the element of an iteration follows that of the last lane of the iteration before.
bool continues(const std::vector<Expr>& indices, const For& outer, const For& lanes, const Analyzer& facts) {
  if (indices.size() != 1 || coefficient(indices[0], lanes.var, facts) != 1) return false;
  return coefficient(indices[0], outer.var, facts) == as_int(lanes.extent);
}

// Returns whether the loop copies, or fills, memory that is side by side in all its iterations.
bool moves_neighbours(const For& outer, const For& lanes, const Analyzer& facts) {
  const BufferStore* store = lanes.body.as<BufferStore>();
  if (!store || store->predicate || !continues(store->indices, outer, lanes, facts)) return false;
  const BufferLoad* load = store->value.as<BufferLoad>();
  if (!load) return store->value.is<IntImm>() || store->value.is<FloatImm>();
  return !load->predicate && !same_node(load->buffer, store->buffer) && continues(load->indices, outer, lanes, facts);
}

std::optional<Stmt> joined_vectors(const For& outer, const Span& span, const Analyzer& facts, const Target& target) {
  const For* lanes = outer.body.as<For>();
  const bool is_around = outer.kind == ForKind::kSerial && outer.annotations.empty() && lanes &&
                         lanes->kind == ForKind::kVectorized && is_int(lanes->min, 0);
  if (!is_around) return std::nullopt;
  const auto count = as_int(outer.extent), extent = as_int(lanes->extent);
  const int64_t in_register = target.vector_lanes(widest_bits(lanes->body));
  if (!count || !extent || *count < 2 || 2 * *extent > in_register || !moves_neighbours(outer, *lanes, facts))
    return std::nullopt;
  For all = *lanes;
  all.extent = int_imm(*count * *extent, dtype_of(lanes->var));
  all.body = substitute(lanes->body, {{outer.var.get(), outer.min}});
  const bool is_short = *count * *extent <= kMostCopies * in_register;
  return in_vectors(make(std::move(all), span), in_register, is_short ? ForKind::kUnrolled : ForKind::kSerial, facts);
}

}  // namespace

// Joins the vectors of a loop that copies or fills memory side by side: pixels of 16 channels of a byte fill a quarter
// of a register each.
PrimFuncRef join_vectors(const PrimFuncRef& function, const Target& target) {
  if (may_alias(function)) return function;
  Analyzer facts = facts_of_params(function);
  return with_body(function, rewrite(function->body, [&](const Ref<For>& loop) -> std::optional<Stmt> {
                     return joined_vectors(*loop, loop.span(), facts, target);
                   }));
}

}  // namespace relaxc
