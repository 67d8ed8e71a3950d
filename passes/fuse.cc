// Expects: call_tirs (legalize). Guarantees: each group of call_tirs that can share a kernel is one call_tir of one
// tensor program, the blocks in order; scheduling then inlines and tiles them. Dims that are constants where a program
// is called are constants in it, also where it stays alone (constant_dims.cc). Grouping, from the last binding to the
// first: a producer joins the group of all its users when every user can take it
//   elementwise, broadcast, injective -> elementwise of the same shape, injective, a plain reduction
//   reduction, contraction, window    -> elementwise or broadcast of the same shape; one of them in a group
//   a border around an image of bytes -> the convolution of it, which stores a border of zeros in the same way
// A program that a rule of the user's names is the one of its group that others follow, so that its schedule meets
// nothing that it does not know but an epilogue. Its name stays with its result (annotation `program`), its blocks keep
// their names, and those of others in the group differ from them.
// An elementwise node that finishes a reduction, contraction or window stays with it, also before a concatenation, or
// where it narrows the result and another heavy node is in the group.
#include <algorithm>
#include <set>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/names.h"
#include "passes/kernel_block.h"
#include "passes/tables.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/byte_tables.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/analysis/pointers.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/choose.h"

namespace relaxc {

namespace {

// Returns whether a rule names the program or, if it was fused before, one in it (name_programs).
bool is_named(const PrimFuncRef& program) { return program->attrs.has(attr_names::kScheduledPart); }

// Returns whether the kernel is for this operator alone.
bool implements(const KernelRule& kernel, const std::string& op) {
  if (!kernel.pattern || kernel.pattern->results.size() != 1) return false;
  const PatternNode& result = *kernel.pattern->results[0];
  auto is_inside = [](const PatternRef& arg) {
    using enum PatternNode::Kind;
    return arg->kind != kAny && arg->kind != kConstant && arg->kind != kIsnt;
  };
  return result.ops == std::vector{ops::full_name(op)} && std::ranges::none_of(result.args, is_inside);
}

}  // namespace

std::string operator_of(const ScheduleRule& rule, const PassContext& context) {
  if (rule.uses.empty() || !rule.op.empty() || !rule.function.empty()) return rule.op;
  const ScheduleRule* used = find_rule(rule.uses, tables_of(context).rules().rules);
  return used ? used->op : "";
}

std::optional<std::string> name_in_rules(const std::string& name, const PrimFuncRef& program,
                                         const PassContext& context) {
  const KernelRule* kernel = kernel_of(name, context);
  std::optional<std::string> result, op;
  for (const ScheduleRule& rule : context.schedules) {
    const std::string rule_op = operator_of(rule, context);
    for (const std::string& wanted : {rule.function, rule_op}) {
      bool is_operator = wanted == rule_op && context.ops.find(ops::full_name(wanted));
      if (kernel && is_operator && implements(*kernel, wanted)) op = wanted;
      if (wanted.empty() || (wanted != name && !(kernel && wanted == kernel->kernel->name))) continue;
      if (!is_operator || operators_of(program).empty()) result = wanted;
    }
  }
  return result ? result : op;
}

namespace {

// Marks the programs that rules name.
void name_programs(IRModule& module, const PassContext& context) {
  for (auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program || is_named(*program)) continue;
    std::optional<std::string> known_as = name_in_rules(name, *program, context);
    if (known_as) function = with_program_name(*program, *known_as);
  }
}

// Returns a member's body in a program whose blocks have the names `taken`, beside one that a rule names.
Stmt beside(const Stmt& body, text::NameTable& taken) {
  return rewrite(body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    return edited<Block>(block, [&](Block& copy) {
      copy.name = taken.reserve(copy.name);
      copy.annotations.set(annotation<"fused_beside">(), true);
    });
  });
}

// Returns whether the block stores a part of what several write: its axes plus offsets.
bool is_part(const Ref<Block>& block, const std::vector<Ref<Block>>& blocks) {
  const BufferStore& store = *single_store(*block);
  std::vector<IterVar> axes = axes_of(*block, IterKind::kSpatial);
  auto stores = [&](const Ref<Block>& other) { return stores_to(other, store.buffer); };
  return !is_at(store.indices, axes) && is_at_offset(store.indices, axes) && std::ranges::count_if(blocks, stores) > 1;
}

bool is_convolution_of_any_rank(const std::string& op) {
  constexpr OpName kConvolutions[] = {ops::kConv1d, ops::kConv2d, ops::kConv3d};
  return std::ranges::any_of(kConvolutions, [&](const OpName& name) { return op == ops::short_name(name); });
}

class BlockFuser {
 public:
  BlockFuser(IRModule& module, const std::vector<Binding>& bindings, const VarSet& used_outside, bool is_dataflow)
      : module_(module), block_(bindings, module, used_outside, is_dataflow) {}

  std::vector<Binding> run(const std::vector<Binding>& bindings) {
    for (size_t i = 0; i < nodes_.size(); ++i) group_.push_back(i);
    for (size_t i = nodes_.size(); i-- > 0;) join(i);
    std::vector<Binding> result;
    // A group takes the place of its last node: its operands are computed before, and nothing before uses its result.
    for (size_t i = 0; i < nodes_.size(); ++i) members_[group_[i]].push_back(i);
    for (const Binding& binding : bindings) {
      const size_t* node = block_.number_of(binding.var);
      if (!node || group_[*node] == *node) result.push_back(node ? merge(*node) : binding);
    }
    return result;
  }

 private:
  void join(size_t i) {
    const BlockKernel& node = nodes_[i];
    const std::vector<size_t>& users = block_.users_of(node.binding.var);
    if (node.pattern == OpPattern::kOpaque || users.empty() || block_.is_used_outside(node.binding.var)) return;
    size_t group = users[0] == KernelBlock::kOther ? KernelBlock::kOther : group_[users[0]];
    for (size_t user : users) {
      if (user == KernelBlock::kOther || group_[user] != group || !takes(user, node)) return;
    }
    if (heavy_groups_.contains(group) && narrows_heavy(node)) return;
    bool heavy = node.pattern >= OpPattern::kReduction;
    if (heavy && (!keeps_shape_behind(i, group) || !heavy_groups_.insert(group).second)) return;
    if (group_size_[group] >= 32) return;  // bounds parameters and code size
    ++group_size_[group];
    group_[i] = group;
  }

  // Returns whether all that the group computes from the node has its shape. Schedules compute an epilogue by the tiles
  // of the node's result, which would not cover a concatenation.
  bool keeps_shape_behind(size_t i, size_t group) const {
    std::set<size_t> behind{i};
    for (size_t next : behind) {  // users come later, so the loop meets those that it inserts
      const VarRef& result = nodes_[next].binding.var;
      if (!same_shape(result, nodes_[i].binding.var)) return false;
      if (next != i && nodes_[next].pattern > OpPattern::kBroadcast) return false;
      if (next != group) behind.insert(block_.users_of(result).begin(), block_.users_of(result).end());
    }
    return true;
  }

  // Returns whether the node stores the result of a reduction or contraction in fewer bytes, as quantize does. With
  // that one, which cannot join, it saves traffic.
  bool narrows_heavy(const BlockKernel& node) const {
    auto bits_of = [](const Expr& tensor) { return tensor_dtype(tensor.type()).value_or(kInt64).bits; };
    const int bits = bits_of(node.binding.var);
    auto is_wider = [&](const Expr& tensor) { return same_shape(tensor, node.binding.var) && bits_of(tensor) > bits; };
    return std::ranges::any_of(node.call.tensors, is_wider) && block_.finishes_heavy(node);
  }

  bool takes(size_t user_number, const BlockKernel& producer) {
    const BlockKernel& user = nodes_[user_number];
    if (user.pattern >= OpPattern::kReduction) heavy_groups_.insert(group_[user_number]);
    if (user.pattern == OpPattern::kAnchor) return surrounds_image(producer, user);
    if (user.pattern == OpPattern::kOpaque) return false;
    bool same = same_shape(producer.binding.var, user.binding.var);
    if (producer.pattern >= OpPattern::kReduction) return user.pattern <= OpPattern::kBroadcast && same;
    if (user.pattern <= OpPattern::kBroadcast) return same;
    bool is_plain = producer.pattern <= OpPattern::kBroadcast;
    if (is_plain && block_.finishes_heavy(producer)) return false;
    return is_plain || user.pattern == OpPattern::kInjective;
  }

  // Returns whether the node surrounds an image of bytes with their zero point (integer_regions) for a convolution.
  static bool surrounds_image(const BlockKernel& node, const BlockKernel& user) {
    const std::vector<std::string> ops = operators_of(node.program), users = operators_of(user.program);
    const bool is_image = !user.call.tensors.empty() && same_node(user.call.tensors[0], node.binding.var);
    return ops == std::vector<std::string>{ops::short_name(ops::kPad)} &&
           tensor_dtype(node.binding.var.type())->bits == 8 && is_image && !users.empty() &&
           is_convolution_of_any_rank(users[0]) && !is_named(user.program) && !is_named(node.program);
  }

  // Appends a member's name to that of the fused program, unless it is long already. The number of a copy is left out:
  // "conv_1" beside "conv", and not the digits of a name of the user's.
  void add_name(std::string& name, const std::string& callee) const {
    std::string base = callee;
    size_t end = callee.find_last_not_of("0123456789");
    bool has_number = end != std::string::npos && end > 0 && end + 1 < callee.size() && callee[end] == '_';
    if (has_number && module_.find(callee.substr(0, end))) base.resize(end);
    if (base.starts_with("fused_")) base.erase(0, 6);
    if (name.size() < 80) name += fmt::format("_{}", base);
  }

  Binding merge(size_t last) {
    const std::vector<size_t>& members = members_.at(last);
    const BlockKernel& result = nodes_[last];
    if (members.size() == 1) return result.binding;
    ProgramComposer composer;
    std::string name = "fused";
    auto named = std::ranges::find_if(members, [&](size_t i) { return is_named(nodes_[i].program); });
    text::NameTable names;  // of blocks
    if (named != members.end())
      walk(nodes_[*named].program->body, [&](const Block& block) { names.reserve(block.name); });
    for (size_t i : members) {
      const BlockKernel& node = nodes_[i];
      bool is_beside = named != members.end() && i != *named;
      composer.add(node.call, node.program, {node.binding.var},
                   [&](const Stmt& body) { return is_beside ? beside(body, names) : body; });
      add_name(name, node.call.name());
    }
    // A profile names the node of the heaviest member first, which takes most of the time.
    size_t main = *std::ranges::max_element(members, {}, [&](size_t i) { return nodes_[i].pattern; });
    const Span span = span_of_nodes(span_of(nodes_[main].binding),
                                    map_each(members, [&](size_t i) { return span_of(nodes_[i].binding); }));
    Attrs attrs;
    if (named != members.end())
      attrs.set(attr_names::kScheduledPart, *nodes_[*named].program->attrs.find(attr_names::kScheduledPart));
    PrimFuncRef program = composer.finish({result.binding.var}, span, attrs);
    Expr call = make_call_tir(module_, name, program, composer.inputs(), {result.binding.var.type()}, span);
    return {call, std::nullopt, result.binding.var};
  }

  IRModule& module_;
  const KernelBlock block_;
  const std::vector<BlockKernel>& nodes_ = block_.kernels();
  std::vector<size_t> group_;                                // of each node: the number of the group's last one
  std::unordered_map<size_t, std::vector<size_t>> members_;  // a group's last node -> all its nodes, in order
  std::unordered_set<size_t> heavy_groups_;
  std::unordered_map<size_t, size_t> group_size_;
};

Expr fuse_sequence(const Expr& seq, IRModule& module) {
  return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
    std::vector<Binding> bindings = block.bindings;
    for (Binding& binding : bindings)
      binding.value = map_sequences(binding.value, [&](const Expr& inner) { return fuse_sequence(inner, module); });
    return BlockFuser(module, bindings, used_after, block.dataflow).run(bindings);
  });
}

}  // namespace

// Returns whether the blocks can be one: each goes over the axes of the last and reads, of what others made, the
// element at its place, and the value of the last one does not become long.
static bool is_chain(const std::vector<Ref<Block>>& blocks) {
  constexpr size_t kMostNodes = 256;
  std::unordered_map<const NodeHeader*, size_t>
      sizes;  // of the values, with all that they are computed from, by buffer
  auto has_axes_of_last = [&](const Ref<Block>& block) {
    return std::ranges::equal(block->iter_vars, blocks.back()->iter_vars, [](const IterVar& a, const IterVar& b) {
      return structural_equal(a.domain.extent, b.domain.extent);
    });
  };
  for (const Ref<Block>& block : blocks) {
    const BufferStore& store = *single_store(*block);
    size_t size = 0;
    bool is_in_place = has_axes_of_last(block);
    walk_nodes(store.value, [&](const NodeRef& node) {
      const BufferLoad* load = node.as<BufferLoad>();
      const size_t* made = load ? find_value(sizes, load->buffer.get()) : nullptr;
      size += made ? *made : 1;
      is_in_place = is_in_place && (!made || is_at(load->indices, block->iter_vars));
      return size <= kMostNodes;
    });
    if (blocks.size() > 1 && (!is_in_place || size > kMostNodes)) return false;
    sizes.emplace(store.buffer.get(), size);
  }
  return true;
}

OpPattern pattern_of(const PrimFuncRef& program) {
  if (why_not_fused(program)) return OpPattern::kOpaque;
  auto blocks = find_nests(program);
  OpPattern result = OpPattern::kElementwise;
  for (const Ref<Block>& block : *blocks) {
    std::vector<IterVar> axes = axes_of(*block, IterKind::kSpatial);
    if (axes.size() < block->iter_vars.size()) {
      result = std::max(result, is_contraction(*block) ? OpPattern::kAnchor : OpPattern::kReduction);
      continue;
    }
    OpPattern pattern = is_part(block, *blocks) ? OpPattern::kInjective : OpPattern::kElementwise;
    walk(block->body, [&](const BufferLoad& load) {
      if (byte_table_index(load)) {
        pattern = std::max(pattern, OpPattern::kBroadcast);
        return;
      }
      bool identity = load.indices.size() == axes.size(), aligned = load.indices.size() <= axes.size();
      for (size_t d = 0; d < load.indices.size() && aligned; ++d) {
        const IterVar& axis = axes[axes.size() - load.indices.size() + d];
        bool same = same_node(load.indices[d], axis.var);
        identity = identity && same;
        aligned = aligned && (same || load.indices[d].is<IntImm>());
      }
      if (!identity) pattern = std::max(pattern, aligned ? OpPattern::kBroadcast : OpPattern::kInjective);
    });
    result = std::max(result, pattern);
  }
  // Blocks with intermediates that schedules cannot make one block of take no more than an epilogue.
  if (result <= OpPattern::kBroadcast && !is_chain(*blocks)) result = OpPattern::kInjective;
  return is_named(program) ? OpPattern::kAnchor : result;
}

bool keeps_blocks_together(const PrimFuncRef& program) {
  auto blocks = find_nests(program);
  auto reduces = [](const Ref<Block>& block) {
    return axes_of(*block, IterKind::kSpatial).size() < block->iter_vars.size();
  };
  return blocks && std::ranges::none_of(*blocks, reduces) && !is_chain(*blocks);
}

std::optional<std::string> why_not_fused(const PrimFuncRef& program) {
  if (program->attrs.get_bool(attr_names::kIsScheduled, false)) return "it is scheduled already";
  if (uses_pointers(program)) return "it uses pointers";
  auto blocks = find_nests(program);
  if (!blocks) {
    return "it is not a list of blocks, each in plain loops `for i in range(n)` that are its axes, without other "
           "statements";
  }
  for (const Ref<Block>& block : *blocks) {
    const BufferStore* store = single_store(*block);
    if (!store) return fmt::format("block '{}' does more than one store of an element", block->name);
    std::vector<IterVar> axes = axes_of(*block, IterKind::kSpatial);
    bool is_elementwise = axes.size() == block->iter_vars.size();
    if (is_elementwise && !is_at(store->indices, axes) && !is_part(block, *blocks))
      return fmt::format("block '{}' stores elements of '{}' in another order than its axes", block->name,
                         store->buffer->name);
  }
  return std::nullopt;
}

IRModule fuse(IRModule module, PassContext& context) {
  for (auto& [_, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) function = with_single_stores(*program);
  }
  name_programs(module, context);
  module = map_functions(std::move(module), [](const FunctionRef& function, IRModule& result) {
    return cast<Function>(map_sequences(function, [&](const Expr& body) { return fuse_sequence(body, result); }));
  });
  return with_constant_dims(std::move(module));
}

}  // namespace relaxc
