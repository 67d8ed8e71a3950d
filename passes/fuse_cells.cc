// Expects: call_tirs (compose). Guarantees: a product that is read in bands (product_bands.h), or from which
// elementwise programs compute several results, is one tensor program with these, its cell: what a step of a recurrent
// layer does. A cell has the call_tirs that are computed from the product element by element, and those that only they
// use, if these can be computed where they are used; also behind reshapes that add or drop dims of 1, which fuse does
// not know. Its results are the values that others use. Products of which fuse makes the same are left to it.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/compose.h"
#include "support/lists.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/program.h"
#include "tir/rules/choose.h"
#include "tir/rules/contraction.h"

namespace relaxc {

namespace {

constexpr size_t kMostMembers = 64;  // bounds parameters and code size

// Returns whether the indices are the axes in order. The index of a dim of 1 may be 0, which programs that broadcast
// say.
bool is_in_place(const std::vector<Expr>& indices, const std::vector<IterVar>& axes) {
  return std::equal(indices.begin(), indices.end(), axes.begin(), axes.end(),
                    [](const Expr& index, const IterVar& axis) {
                      return same_node(index, axis.var) || (is_int(index, 0) && is_int(axis.domain.extent, 1));
                    });
}

// Returns whether the program's block reads the tensor where it stores: element by element, or one band.
bool reads_in_place(const KernelNode& node, const Expr& tensor) {
  KernelMatch match = match_kernel(node.call, node.program);
  bool in_place = true;
  for (const KernelOperand& operand : match.operands) {
    if (operand.is_output || !same_node(node.call.tensors[operand.number], tensor)) continue;
    for (const Ref<Block>& block : node.blocks) {
      walk(block->body, [&](const BufferLoad& load) {
        if (!same_node(load.buffer, operand.param)) return;
        std::vector<Expr> indices = load.indices;
        if (indices.size() == block->iter_vars.size() + 1 && indices.size() > 1 && indices.end()[-2].is<IntImm>())
          indices.erase(indices.end() - 2);
        in_place = in_place && is_in_place(indices, block->iter_vars);
      });
    }
  }
  return in_place;
}

// Returns the program that adds and drops dims of 1. It has dims of its own, as programs of operators have.
PrimFuncRef unit_dims_program(const Type& x, const Type& result) {
  ComputeBuilder b;
  std::vector<Expr> from = *known_shape(x), to = *known_shape(result);
  size_t place = 0;
  for (Expr& dim : from) {
    if (is_int(dim, 1)) continue;
    while (is_int(to[place], 1)) ++place;
    if (!as_int(dim)) dim = make_dim("n");
    to[place++] = dim;
  }
  Buffer in = b.input("x", *tensor_dtype(x), from);
  return b.finish({b.compute("T_reshape", *tensor_dtype(x), to, [&](Axes i) {
    std::vector<Expr> at;
    size_t next = 0;
    for (const Expr& dim : from) {
      while (!is_int(dim, 1) && is_int(to[next], 1)) ++next;
      at.push_back(is_int(dim, 1) ? int_imm(0) : i[next++]);
    }
    return load(in, at);
  })});
}

bool same_shape(const Type& a, const Type& b) { return equal_shapes(a, b) == Verdict::kProven; }

class CellFuser {
 public:
  CellFuser(IRModule& module, const PassContext& context, const VarSet& dims, const VarSet& used_outside)
      : module_(module), context_(context), dims_(dims), used_outside_(used_outside) {}

  std::vector<Binding> run(std::vector<Binding> bindings) {
    bindings_ = std::move(bindings);
    collect();
    for (size_t i = 0; i < bindings_.size(); ++i) {
      if (!is_product(i) || !find_cell(i)) continue;
      merge(i);
      collect();
      --i;  // there is another binding now
    }
    return std::move(bindings_);
  }

 private:
  const VarRef& var(size_t i) const { return bindings_[i].var; }
  const std::vector<size_t>& users_of(size_t i) const {
    static const std::vector<size_t> kNone;
    const auto* users = find_value(users_, var(i).get());
    return users ? *users : kNone;
  }
  bool is_member(size_t i) const { return std::ranges::binary_search(members_, i); }

  // Facts about a binding that hold wherever it stands, found once.
  struct Facts {
    std::optional<KernelNode> node;
    VarSet used;
  };
  const Facts& facts_of(const Binding& binding) {
    auto [it, is_new] = facts_.try_emplace(binding.var.get());
    Facts& facts = it->second;
    if (!is_new) return facts;
    add_free_vars(binding.value, facts.used);
    add_free_vars(binding.var.type(), facts.used);
    if (binding.cast) add_free_vars(*binding.cast, facts.used);
    facts.node = node_of(binding);
    return facts;
  }

  void collect() {
    nodes_.assign(bindings_.size(), nullptr);
    uses_.assign(bindings_.size(), {});
    users_.clear();
    std::unordered_map<const NodeHeader*, const NodeHeader*> casts;  // dims -> the variables of casts that bind them
    std::unordered_map<const NodeHeader*, size_t> places;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Binding& binding = bindings_[i];
      const Facts& facts = facts_of(binding);
      VarSet values;
      for (const NodeHeader* each : facts.used) values.insert(copy_value(casts, each).value_or(each));
      for (const NodeHeader* each : values) {
        users_[each].push_back(i);
        if (const size_t* place = find_value(places, each)) uses_[i].push_back(*place);
      }
      places.emplace(binding.var.get(), i);
      if (facts.node) nodes_[i] = &*facts.node;
      if (!binding.cast) continue;
      VarSet bound;
      add_free_vars(*binding.cast, bound);
      for (const NodeHeader* dim : bound) {
        if (!dims_.contains(dim)) casts.emplace(dim, binding.var.get());
      }
    }
  }
  // Returns a reshape that only adds and drops dims of 1 as a program, too.
  std::optional<KernelNode> node_of(const Binding& binding) const {
    if (binding.cast || !tensor_dtype(binding.var.type()) || !known_shape(binding.var.type())) return std::nullopt;
    if (const Call* reshape = as_call(binding.value, ops::kReshape)) return node_of_reshape(reshape->args[0], binding);
    return kernel_node_of(binding, module_);
  }
  static std::optional<KernelNode> node_of_reshape(const Expr& x, const Binding& binding) {
    const std::vector<Expr>* from = known_shape(x.type());
    if (!from || !tensor_dtype(x.type())) return std::nullopt;
    std::vector<Expr> dims[2] = {*from, *known_shape(binding.var.type())};
    for (auto& list : dims) std::erase_if(list, [](const Expr& dim) { return is_int(dim, 1); });
    if (!same_shape(tensor_type(dims[0], kFloat32), tensor_type(dims[1], kFloat32))) return std::nullopt;
    PrimFuncRef program = unit_dims_program(x.type(), binding.var.type());
    KernelCall call{.callee = global_var("reshape", program.type()), .tensors = {x}, .outputs = {binding.var.type()}};
    return KernelNode{call, program, OpPattern::kInjective, *find_nests(program)};
  }

  // Returns whether the binding is a product with a constant operand, or one that the rule for panels schedules, with
  // nothing fused to it.
  bool is_product(size_t i) const {
    if (!nodes_[i] || nodes_[i]->pattern != OpPattern::kAnchor || used_outside_.contains(var(i).get())) return false;
    const std::vector<Ref<Block>>& blocks = nodes_[i]->blocks;
    if (blocks.size() != 1 || operators_of(nodes_[i]->program) != std::vector<std::string>{"matmul"}) return false;
    if (is_scheduled_by_user(nodes_[i]->call.name())) return false;
    if (nodes_[i]->call.tensors.size() == 2 && nodes_[i]->call.tensors[1].is<Constant>()) return true;
    Decisions decisions("contraction", contraction_decisions());
    const ContractionMatch match = match_contraction(Stage{blocks[0], {}}, context_.target, decisions);
    const auto* tile = std::get_if<ContractionTile>(&match);
    return tile && !tile->copies_operand;
  }
  // A schedule that somebody wrote knows the blocks that it meets.
  bool is_scheduled_by_user(const std::string& program) const {
    return std::ranges::any_of(context_.schedules, [&](const ScheduleRule& rule) {
      return rule.uses.empty() && (rule.function == program || rule.op == "matmul" || rule.op == program);
    });
  }

  // Finds members and results of the product's cell. Returns whether it is to be made.
  bool find_cell(size_t product) {
    members_ = {product};
    behind_.assign(bindings_.size(), false);  // others that depend on a member
    const Type* shape = nullptr;
    for (size_t i = product + 1; i < bindings_.size(); ++i) {
      bool takes_member = std::ranges::any_of(uses_[i], [&](size_t used) { return is_member(used); });
      bool takes_other = std::ranges::any_of(uses_[i], [&](size_t used) -> bool { return behind_[used]; });
      if (!takes_member && !takes_other) continue;
      if (!takes_other && joins(i, shape)) {
        members_.push_back(i);
        if (members_.size() > kMostMembers) return false;
        if (!shape) shape = &var(i).type();
      } else {
        behind_[i] = true;
      }
    }
    leave_to_others(product);
    bool is_banded = shape && known_rank(*shape) < known_rank(var(product).type());
    results_ = results_of(members_);
    if (members_.size() == 1 || std::ranges::count(results_, product)) return false;
    take_producers(product);
    auto is_reshape = [&](size_t i) { return as_call(bindings_[i].value, ops::kReshape) != nullptr; };
    return is_banded || results_.size() > 1 || std::ranges::any_of(members_, is_reshape);
  }
  // Leaves members out that only others in the block use, where the cell then has fewer results.
  void leave_to_others(size_t product) {
    std::vector<size_t> left = members_;
    size_t fewest = results_of(left).size();
    for (size_t at = left.size(); at-- > 1;) {
      std::vector<size_t> fewer = left;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(at));
      auto is_in = [&](size_t user) { return std::ranges::count(left, user) > 0; };
      bool is_needed = used_outside_.contains(var(left[at]).get()) || std::ranges::any_of(users_of(left[at]), is_in);
      std::vector<size_t> results = results_of(fewer);
      if (is_needed || results.size() > results_of(left).size() || std::ranges::count(results, product)) continue;
      left = std::move(fewer);
      if (results.size() >= fewest) continue;
      fewest = results.size();
      for (size_t i : members_) behind_[i] = std::ranges::count(left, i) == 0;
      members_ = left;
    }
  }
  // Returns whether the node computes each element of its result from those of members at the same place.
  bool joins(size_t i, const Type* shape) const {
    if (!nodes_[i] || nodes_[i]->pattern > OpPattern::kInjective || nodes_[i]->blocks.size() != 1) return false;
    if (shape && !same_shape(*shape, var(i).type())) return false;
    return std::ranges::all_of(nodes_[i]->call.tensors, [&](const Expr& tensor) {
      auto is_it = [&](size_t member) { return same_node(var(member), tensor); };
      return std::ranges::none_of(members_, is_it) || reads_in_place(*nodes_[i], tensor);
    });
  }
  // Returns those of the nodes that others use.
  std::vector<size_t> results_of(const std::vector<size_t>& nodes) const {
    std::vector<size_t> results;
    std::ranges::copy_if(nodes, std::back_inserter(results), [&](size_t i) {
      return used_outside_.contains(var(i).get()) ||
             std::ranges::any_of(users_of(i), [&](size_t user) { return !std::ranges::count(nodes, user); });
    });
    return results;
  }
  // Adds nodes that can be computed again where they are used: those that only members use, and copies of those that
  // only take elements.
  void take_producers(size_t product) {
    copies_.clear();
    for (size_t i = members_.back(); i-- > 0;) {
      const std::vector<size_t>& users = users_of(i);
      if (is_member(i) || behind_[i] || !nodes_[i] || members_.size() >= kMostMembers) continue;
      const KernelNode& node = *nodes_[i];
      bool is_used = std::ranges::any_of(users, [&](size_t user) { return is_member(user); });
      if (!is_used) continue;
      bool is_plain = node.pattern <= OpPattern::kInjective && node.blocks.size() == 1;
      bool repeats = users.size() > 1 && any_is_expensive(node.blocks);
      bool is_shared = used_outside_.contains(var(i).get()) || std::ranges::any_of(users, [&](size_t user) {
                         return !is_member(user) || std::ranges::count(copies_, user) > 0;
                       });
      if (!is_plain || repeats || std::ranges::count(users, product) > 0) continue;
      if (is_shared && !moves_elements(node)) continue;
      if (is_shared) copies_.push_back(i);
      members_.insert(std::ranges::lower_bound(members_, i), i);
    }
  }
  static bool moves_elements(const KernelNode& node) {
    const BufferStore* store = node.blocks[0]->body.as<BufferStore>();
    return store && store->value.is<BufferLoad>();
  }

  // Replaces the members by one call. What depends on it comes after it.
  void merge(size_t product) {
    ProgramComposer composer;
    for (size_t i : members_) composer.add(nodes_[i]->call, nodes_[i]->program, {var(i)});
    const std::vector<Expr> values = map_each(results_, [&](size_t i) -> Expr { return var(i); });
    const std::vector<Type> types = map_each(results_, [&](size_t i) { return var(i).type(); });
    const Span span =
        span_of_nodes(span_of(bindings_[product]), map_each(members_, [&](size_t i) { return span_of(bindings_[i]); }));
    const Expr call =
        make_call_tir(module_, name_of_cell(), composer.finish(values, span), composer.inputs(), types, span);
    std::vector<Binding> before, after;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      if (!is_member(i) || std::ranges::count(copies_, i)) (behind_[i] ? after : before).push_back(bindings_[i]);
    }
    if (results_.size() == 1) {
      before.push_back({call, std::nullopt, var(results_[0])});
    } else {
      VarRef all = make_var("cell", call.type(), span);
      before.push_back({call, std::nullopt, all});
      for (size_t k = 0; k < results_.size(); ++k)
        before.push_back({tuple_get(all, static_cast<int64_t>(k)), std::nullopt, var(results_[k])});
    }
    std::ranges::copy(after, std::back_inserter(before));
    // Results have other values now, and variables that go may leave their address to later ones.
    for (size_t i : members_) facts_.erase(var(i).get());
    bindings_ = std::move(before);
  }
  // Returns the names of the members' programs, each once, without the numbers of copies.
  std::string name_of_cell() const {
    std::vector<std::string> names = {"fused"};
    for (size_t i : members_) {
      const std::string& name = nodes_[i]->call.name();
      std::string base = name.substr(0, name.find_last_not_of("_0123456789") + 1);
      bool moves = base == "band" || base == "reshape" || base == "strided_slice";
      if (!moves && std::ranges::count(names, base) == 0) names.push_back(std::move(base));
    }
    return fmt::format("{}", fmt::join(names, "_"));
  }

  IRModule& module_;
  const PassContext& context_;
  const VarSet &dims_, &used_outside_;  // bound by the function's params; used after the block
  std::vector<Binding> bindings_;
  std::unordered_map<const NodeHeader*, Facts> facts_;                // by variable
  std::vector<const KernelNode*> nodes_;                              // by binding; null for others
  std::vector<std::vector<size_t>> uses_;                             // by binding: those that it uses
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;  // by variable
  std::vector<size_t> members_, results_;                             // bindings, in order
  std::vector<size_t> copies_;                                        // members that others use as well
  std::vector<bool> behind_;
};

// Branches and local functions have blocks of their own.
Expr fuse_sequence(const Expr& seq, IRModule& module, const PassContext& context, const VarSet& dims) {
  return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
    std::vector<Binding> bindings = block.bindings;
    for (Binding& binding : bindings)
      binding.value =
          map_sequences(binding.value, [&](const Expr& inner) { return fuse_sequence(inner, module, context, dims); });
    return block.dataflow ? CellFuser(module, context, dims, used_after).run(std::move(bindings)) : bindings;
  });
}

}  // namespace

IRModule fuse_cells(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    VarSet dims;
    for (const VarRef& param : function->params) add_free_vars(param.type(), dims);
    return cast<Function>(
        map_sequences(function, [&](const Expr& body) { return fuse_sequence(body, result, context, dims); }));
  });
}

}  // namespace relaxc
