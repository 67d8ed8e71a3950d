#include <algorithm>

#include "tir/schedule/loops.h"

namespace relaxc {

namespace {

struct Access {
  Buffer buffer;
  std::vector<Expr> indices;
};

std::vector<Access> accesses_of(const Stage& stage) {
  std::vector<Access> result;
  walk(
      stage.block->body, [&](const BufferLoad& load) { result.push_back({load.buffer, load.indices}); },
      [&](const BufferStore& store) { result.push_back({store.buffer, store.indices}); });
  return result;
}

// Axes `outer` and `inner` (its right neighbour) walk every buffer as one: stride(outer) = extent(inner) *
// stride(inner).
bool can_merge(const std::vector<Access>& accesses, const IterVar& outer, const IterVar& inner, const Analyzer& facts) {
  for (const Access& access : accesses) {
    auto outer_stride = access_stride(access.buffer, access.indices, outer.var, facts);
    auto inner_stride = access_stride(access.buffer, access.indices, inner.var, facts);
    if (!outer_stride || !inner_stride) return false;
    if (!facts.can_prove_equal(*outer_stride, *inner_stride * inner.domain.extent)) return false;
  }
  return true;
}

// Uses an axis elsewhere than in an index of a plain access: in a condition, as a value, in a nested load's index.
bool only_in_indices(const Stage& stage, const VarRef& axis) {
  bool ok = true;
  auto outside = [&](const Expr& e) {
    walk(e, [&](const BufferLoad&) { return false; }, [&](const Ref<Var>& var) { ok = ok && !same_node(var, axis); });
  };
  walk(stage.block->body, [&](const BufferStore& store) { outside(store.value); });
  return ok;
}

}  // namespace

Stmt schedule_elementwise(const Stage& stage, const Target& target, const Analyzer& outer_facts) {
  Analyzer facts = outer_facts;
  for (const IterVar& axis : stage.axes) facts.bind(axis.var, axis.domain.min, axis.domain.extent);
  std::vector<Access> accesses = accesses_of(stage);

  // Groups of neighbouring axes, outermost first, each walked as one loop.
  std::vector<std::vector<IterVar>> groups;
  for (const IterVar& axis : stage.axes) {
    bool merges =
        !groups.empty() && (is_int(axis.domain.extent, 1) ||
                            (only_in_indices(stage, axis.var) && only_in_indices(stage, groups.back().back().var) &&
                             can_merge(accesses, groups.back().back(), axis, facts)));
    if (merges) {
      groups.back().push_back(axis);
    } else {
      groups.push_back({axis});
    }
  }
  // The statement with each group's axes taken from one index per group.
  auto body_at = [&](const std::vector<Expr>& positions) {
    VarMap axes;
    for (size_t g = 0; g < groups.size(); ++g) {
      Expr rest = positions[g];
      for (size_t i = groups[g].size(); i-- > 0;) {
        const Expr& extent = groups[g][i].domain.extent;
        axes.emplace(groups[g][i].var.get(), i == 0 ? rest : floor_mod(rest, extent));
        rest = floor_div(rest, extent);
      }
    }
    return instantiate(stage.block->body, axes);
  };
  std::vector<Expr> extents;
  for (const auto& group : groups) {
    Expr extent = int_imm(1);
    for (const IterVar& axis : group) extent = extent * axis.domain.extent;
    extents.push_back(facts.simplify(extent));
  }
  if (extents.empty()) return body_at({});

  // Vectors along the last group, if every access is contiguous or constant there.
  int lanes = stage_lanes(stage, target);
  const VarRef& last = groups.back().back().var;
  for (const Access& access : accesses) {
    auto stride = access_stride(access.buffer, access.indices, last, facts);
    bool fine = stride && (is_int(*stride, 1) || is_int(*stride, 0));
    if (!fine) lanes = 1;
  }
  Expr inner = extents.back();
  if (auto known = as_int(inner); known && *known < lanes) lanes = 1;
  std::vector<Expr> outer(extents.begin(), extents.end() - 1);
  ForKind kind = is_small(extents, 4) ? ForKind::kSerial : ForKind::kParallel;

  auto vector_body = [&](std::vector<Expr> positions, const Expr& vector) {
    return make_loop("lane", int_imm(lanes), ForKind::kVectorized, [&](const Expr& lane) {
      positions.push_back(vector * lanes + lane);
      return body_at(positions);
    });
  };
  auto scalar_body = [&](std::vector<Expr> positions, const Expr& index) {
    positions.push_back(index);
    return body_at(positions);
  };
  Expr vectors = facts.simplify(floor_div(inner, lanes)), rest = facts.simplify(floor_mod(inner, lanes));
  auto tail = [&](const std::vector<Expr>& positions) {
    if (is_int(rest, 0)) return no_op();
    return make_loop("tail", rest, ForKind::kSerial,
                     [&](const Expr& t) { return scalar_body(positions, vectors * lanes + t); });
  };

  bool only_inner = std::all_of(outer.begin(), outer.end(), [](const Expr& e) { return is_int(e, 1); });
  if (only_inner) {
    // One long loop: chunks of it in parallel.
    std::vector<Expr> zeros(outer.size(), int_imm(0));
    constexpr int64_t kChunk = 128;  // vectors; 8 KiB of float32 at 16 lanes
    Stmt main = no_op();
    auto known = as_int(vectors);
    if (kind == ForKind::kSerial || (known && *known <= kChunk)) {
      main = make_loop("i", vectors, ForKind::kSerial,
                       [&](const Expr& i) { return lanes > 1 ? vector_body(zeros, i) : scalar_body(zeros, i); });
    } else {
      main = make_loop("chunk", facts.simplify(ceil_div(vectors, kChunk)), ForKind::kParallel, [&](const Expr& chunk) {
        Expr first = chunk * kChunk;
        Expr count = min(int_imm(kChunk), vectors - first);
        return make_loop("i", count, ForKind::kSerial, [&](const Expr& i) {
          return lanes > 1 ? vector_body(zeros, first + i) : scalar_body(zeros, first + i);
        });
      });
    }
    return lanes > 1 ? seq({main, tail(zeros)}) : main;
  }
  return fused_loop(outer, kind, [&](const std::vector<Expr>& positions) {
    Stmt main = make_loop("i", vectors, ForKind::kSerial, [&](const Expr& i) {
      return lanes > 1 ? vector_body(positions, i) : scalar_body(positions, i);
    });
    return lanes > 1 ? seq({main, tail(positions)}) : main;
  });
}

Stmt schedule_fallback(const Stage& stage) {
  std::vector<Expr> spatial;
  for (size_t d = 0; d < stage.num_spatial; ++d) spatial.push_back(stage.axes[d].domain.extent);
  ForKind kind = is_small(spatial, stage.reduces() ? 64 : 4) ? ForKind::kSerial : ForKind::kParallel;
  return fused_loop(spatial, kind, [&](const std::vector<Expr>& positions) {
    VarMap axes;
    for (size_t d = 0; d < stage.num_spatial; ++d) axes.emplace(stage.axes[d].var.get(), positions[d]);
    std::vector<Stmt> stmts;
    if (stage.block->init) stmts.push_back(instantiate(*stage.block->init, axes));
    std::vector<VarRef> loops;
    for (size_t d = stage.num_spatial; d < stage.axes.size(); ++d) {
      loops.push_back(make_dim("k"));
      axes.emplace(stage.axes[d].var.get(), loops.back());
    }
    Stmt body = instantiate(stage.block->body, axes);
    for (size_t d = loops.size(); d-- > 0;)
      body = loop(loops[d], stage.axes[stage.num_spatial + d].domain.extent, body);
    stmts.push_back(body);
    return seq(std::move(stmts));
  });
}

}  // namespace relaxc
