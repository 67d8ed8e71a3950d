#include "tir/rules/versions.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/pointers.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

constexpr int64_t kMostSpecial = 8;

struct Choice {
  Ref<Block> block;
  Expr condition, holds, fails;  // if_then_else(condition, holds, fails)
};

std::optional<Choice> find_choice(const PrimFuncRef& program) {
  std::optional<Choice> result;
  walk(program->body, [&](const Ref<Block>& block) {
    const BufferStore* store = block->body.as<BufferStore>();
    const Call* call = store ? as_call(store->value, ops::kIfThenElse) : nullptr;
    if (call && block->annotations.has(annotation<"chosen_by_dims">()))
      result = Choice{block, call->args[0], call->args[1], call->args[2]};
  });
  return result;
}

// Returns the program without nests whose results nobody reads.
PrimFuncRef without_unread_nests(const PrimFuncRef& program) {
  std::vector<Buffer> buffers;
  std::vector<Stmt> nests = statements_of(take_root(program->body, buffers));
  std::unordered_set<const NodeHeader*> needed;
  for (const Buffer& param : buffer_params(program)) needed.insert(param.get());
  std::vector<Stmt> kept;
  for (const Stmt& nest : std::views::reverse(nests)) {
    bool is_needed = false;
    walk(nest, [&](const BufferStore& store) { is_needed = is_needed || needed.contains(store.buffer.get()); });
    if (!is_needed) continue;
    walk(nest, [&](const BufferLoad& load) { needed.insert(load.buffer.get()); });
    kept.insert(kept.begin(), nest);
  }
  std::erase_if(buffers, [&](const Buffer& buffer) { return !needed.contains(buffer.get()); });
  return with_body(program, root_block(std::move(buffers), seq(std::move(kept), program->body.span())));
}

PrimFuncRef with_result(const PrimFuncRef& program, const Choice& choice, const Expr& value) {
  return without_unread_nests(
      with_body(program, rewrite(program->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
                  if (!same_node(block, choice.block)) return std::nullopt;
                  return edited<Block>(block, [&](Block& copy) {
                    copy.annotations = copy.annotations.without(annotation<"chosen_by_dims">());
                    copy.body = edited<BufferStore>(copy.body, [&](BufferStore& store) { store.value = value; });
                    copy.reads = find_accesses(copy.body).reads;
                  });
                })));
}

}  // namespace

PrimFuncRef with_sizes(const PrimFuncRef& program, const VarMap& sizes) {
  PrimFunc copy = *program;
  for (VarRef& param : copy.params) {
    if (sizes.contains(param.get())) param = make_var(param->name, param.type());
  }
  const Expr renamed = make_prim_func(std::move(copy), program.span());
  return cast<PrimFunc>(substitute(renamed, sizes));
}

std::optional<VersionsByDims> versions_by_dims(const PrimFuncRef& program) {
  const std::optional<Choice> choice = uses_pointers(program) ? std::nullopt : find_choice(program);
  if (!choice) return std::nullopt;
  const std::vector<VarRef> dims = free_vars(choice->condition), known = symbolic_dims(program);
  auto is_dim = [&](const VarRef& var) {
    return std::ranges::any_of(known, [&](const VarRef& dim) { return same_node(dim, var); });
  };
  if (!std::ranges::all_of(dims, is_dim)) return std::nullopt;
  VersionsByDims result{{}, with_result(program, *choice, choice->fails)};
  const PrimFuncRef chosen = with_result(program, *choice, choice->holds);
  for (int64_t size = 1; size <= (dims.size() == 1 ? kMostSpecial : 1); ++size) {
    VarMap sizes;
    Expr condition = bool_imm(true);
    for (const VarRef& dim : dims) {
      sizes.emplace(dim.get(), int_imm(size));
      condition = binary(BinaryOp::kAnd, condition, equal(dim, int_imm(size)));
    }
    if (!is_int(simplify(substitute(choice->condition, sizes)), 1)) break;
    result.special.push_back({simplify(condition), with_sizes(chosen, sizes)});
  }
  PrimFunc general = *result.general;
  general.attrs.set(attr_names::kHasVersions, std::ssize(result.special));
  result.general = make_prim_func(std::move(general), program.span());
  return result;
}

}  // namespace relaxc
