#include <algorithm>
#include <bit>

#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

Stmt split(const Stmt& s, const Analyzer& facts, const Target& target) {
  constexpr int64_t kMostCopies = 8;
  const For& loop = *s.as<For>();
  int64_t extent = as_int(loop.extent).value_or(0), lanes = target.vector_lanes(widest_bits(loop.body));
  bool is_whole = extent <= lanes || std::has_single_bit(static_cast<uint64_t>(extent));
  if (is_whole || lanes < 2 || has_vectors(loop.body)) return s;
  return in_vectors(s, lanes, extent / lanes <= kMostCopies ? ForKind::kUnrolled : ForKind::kSerial, facts);
}

}  // namespace

// Splits vectorized loops into registers: one of 28 lanes becomes one of 16 and one of 12. LLVM keeps a vector whose
// lanes are not a power of 2 in as many registers as it has lanes where it lives across the end of a loop.
PrimFuncRef whole_registers(const PrimFuncRef& function, const Target& target) {
  Analyzer facts = facts_of_params(function);
  return with_body(function, rewrite(function->body, [&](const Ref<For>& loop) -> std::optional<Stmt> {
                     if (loop->kind != ForKind::kVectorized) return std::nullopt;
                     return split(loop, facts, target);
                   }));
}

}  // namespace relaxc
