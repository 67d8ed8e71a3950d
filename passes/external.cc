#include "passes/external.h"

#include <algorithm>
#include <cstring>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "passes/groups.h"
#include "passes/kernel_rules.h"
#include "passes/pattern_pass.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

constexpr const char* kDims = "external_dims";  // the buffer with the dims of all tensors
constexpr const char* kCompiler = "external";   // the program's attribute

struct ExternalRule {
  KernelRule rule;  // a pattern alone
  decltype(ExternalPattern::check) check;
};

// Calls a function of the backend, whose exceptions become errors that name it.
template <class F>
auto call_backend(const ExternalCompiler& compiler, const Span& span, const F& fn) {
  std::string what;
  try {
    return fn();
  } catch (const CompileError&) {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "it threw an exception that is not a std::exception";
  }
  fail(span, "backend '{}' failed: {}", compiler.name, what);
}

std::vector<ExternalRule> rules_of(const ExternalCompiler& compiler, const OpTable& ops) {
  std::vector<ExternalRule> result;
  const std::string place = "the patterns of backend '" + compiler.name + "'";
  for (const ExternalPattern& each : compiler.patterns) {
    for (KernelRule& rule : read_loose_patterns(each.text, place, ops)) result.push_back({std::move(rule), each.check});
  }
  return result;
}

std::vector<VarRef> tensors_used(const NodeRef& value) {
  std::vector<VarRef> result = free_vars(value);
  std::erase_if(result, [](const VarRef& var) { return var.type().is<PrimType>(); });
  return result;
}

using Refusals = std::unordered_map<const NodeHeader*, std::string>;  // by variable

// What a backend takes of a block.
class BlockClaims {
 public:
  // `refusals` gets the reason against each binding that patterns begin at, of the pattern of which most matches.
  BlockClaims(const BindingBlock& block, const VarSet& used_after, const ExternalCompiler& compiler,
              const std::vector<ExternalRule>& rules, PassContext& context, Refusals& refusals)
      : bindings_(block.bindings),
        used_after_(used_after),
        compiler_(compiler),
        context_(context),
        refusals_(refusals) {
    find_matches(rules);
    if (!matches_.empty()) make_nodes();
  }

  std::vector<Binding> rewritten(IRModule& module) const {
    if (matches_.empty()) return bindings_;
    std::vector<bool> may_join = map_each(nodes_, [](const Node& node) { return node.match != nullptr; });
    ConnectedGroups groups(map_each(nodes_, &Node::needs), may_join);
    VarSet used = used_after_;
    for (size_t user = 0; user < nodes_.size(); ++user) {
      for (const auto& [var, node] : nodes_[user].uses) {
        if (groups.group(user) != groups.group(node)) used.insert(var.get());
      }
    }
    std::vector<Binding> result;
    VarSet computed;
    bool is_changed = false;
    for (const std::vector<size_t>& members : groups.in_order()) {
      std::vector<Binding> call;
      if (nodes_[members[0]].match) call = call_of(members, used, module);
      if (!call.empty()) {
        is_changed = true;
        std::ranges::move(call, std::back_inserter(result));
        continue;
      }
      for (size_t node : members) {
        // Those of a match that the compiler declined include what it shares, which may have no node.
        for (const Binding& binding : nodes_[node].all()) {
          if (computed.insert(binding.var.get()).second) result.push_back(binding);
        }
      }
    }
    return is_changed ? result : bindings_;
  }

 private:
  // A match, or a binding that is in none.
  struct Node {
    const ExternalMatch* match = nullptr;
    std::vector<Binding> bindings = {};  // that it alone computes
    const std::vector<Binding>& all() const { return match ? match->match.inside : bindings; }
    std::vector<std::pair<VarRef, size_t>> uses = {};  // of values of other nodes
    std::vector<size_t> needs = {};                    // nodes that have to come before
  };

  // Notes the matches of one of the backend's patterns.
  class Taker final : public PatternUser {
   public:
    Taker(BlockClaims& claims, const ExternalRule& rule) : claims_(claims), rule_(rule) {}
    std::optional<std::string> take(const PatternMatch& match) override {
      const Span& span = match.results.back().span();
      std::string why = call_backend(claims_.compiler_, span, [&] { return why_not(rule_.rule, rule_.check, match); });
      if (!match.late.empty()) why = "a result is read before the last one is computed";
      if (!why.empty()) return why;
      claims_.matches_.emplace(match.at, ExternalMatch{rule_.rule.name, match});
      return std::nullopt;
    }
    void is_refused(size_t i, const PatternRefusal& refused) override {
      claims_.refused_.emplace_back(i, PatternRefusal{rule_.rule.name + ": " + refused.why, refused.depth});
    }

   private:
    BlockClaims& claims_;
    const ExternalRule& rule_;
  };

  void find_matches(const std::vector<ExternalRule>& rules) {
    PatternScope scope(bindings_, used_after_, context_.ops);
    for (const ExternalRule& rule : rules) {
      Taker taker(*this, rule);
      scope.find_all(*rule.rule.pattern, rule.rule.name, taker);
    }
    // The pattern of which most matches comes first, since a node of the model may be several bindings.
    std::ranges::stable_sort(refused_, std::greater(), [](const auto& each) { return each.second.depth; });
    for (const auto& [at, refused] : refused_) report(bindings_[at], refused.why);
  }

  static std::string why_not(const KernelRule& rule, const decltype(ExternalPattern::check)& check,
                             const PatternMatch& match) {
    for (const Binding& binding : match.inside) {
      for (const VarRef& var : tensors_used(binding.value)) {
        bool is_inside = std::ranges::any_of(match.inside, [&](const Binding& b) { return same_node(b.var, var); });
        if (!is_inside && !is_known(var)) return fmt::format("'{}' is not a tensor of known rank and dtype", var->name);
      }
    }
    for (const VarRef& result : match.results) {
      if (!is_known(result)) return fmt::format("'{}' is not a tensor of known rank and dtype", result->name);
    }
    std::optional<std::string> why = unmet_condition(rule, match);
    if (!why && check) why = check(match);
    return why.value_or("");
  }
  static bool is_known(const VarRef& var) { return known_shape(var.type()) && tensor_dtype(var.type()); }

  void report(const Binding& binding, const std::string& refused) const {
    if (!refused.empty()) refusals_.try_emplace(binding.var.get(), refused);
    if (!context_.claimed) return;
    context_.claimed({binding.var.span(), ops::short_name(op_name(binding.value)),
                      fmt::format("backend '{}'", compiler_.name), refused});
  }

  // A match stands where its last result is. Values that nothing uses any more are left out.
  void make_nodes() {
    VarSet covered, live = used_after_;
    for (const auto& [at, each] : matches_) {
      for (const Binding& binding : own_bindings(each.match)) covered.insert(binding.var.get());
    }
    std::vector<Node> nodes;
    for (size_t i = bindings_.size(); i-- > 0;) {
      const Binding& binding = bindings_[i];
      auto match = matches_.find(i);
      bool is_dead = !live.contains(binding.var.get()) && !binding.cast && is_pure(binding.value);
      if (match == matches_.end() && (covered.contains(binding.var.get()) || is_dead)) continue;
      Node node{.match = match == matches_.end() ? nullptr : &match->second};
      node.bindings = node.match ? own_bindings(node.match->match) : std::vector{binding};
      VarSet used;
      for (const Binding& inside : node.all()) {
        add_free_vars(inside.value, used);
        if (inside.cast) add_free_vars(*inside.cast, used);
      }
      if (node.match) {
        for (const Binding& inside : node.match->match.inside) used.erase(inside.var.get());
      }
      live.insert(used.begin(), used.end());
      nodes.push_back(std::move(node));
    }
    std::ranges::reverse(nodes);
    for (Node& node : nodes) connect(std::move(node));
  }

  static std::vector<Binding> own_bindings(const PatternMatch& match) {
    std::vector<Binding> result = match.inside;
    std::erase_if(result, [&](const Binding& binding) {
      return std::ranges::any_of(match.shared, [&](const VarRef& var) { return same_node(var, binding.var); });
    });
    return result;
  }

  bool is_pure(const Expr& value) const {
    const Call* call = value.as<Call>();
    return is_leaf(value) || value.is<TupleGetItem>() || (call && relaxc::is_pure(*call, context_.ops));
  }

  void connect(Node node) {
    VarSet inside;
    for (const Binding& binding : node.all()) {
      for (const VarRef& var : free_vars(binding.value)) {
        const size_t* other = find_value(node_of_, var.get());
        if (other && !inside.contains(var.get())) node.uses.emplace_back(var, *other);
      }
      inside.insert(binding.var.get());
    }
    node.needs = map_each(node.uses, [](const auto& use) { return use.second; });
    // Effects keep their order, and dims are there only behind the casts that define them.
    bool is_fixed = !node.match && (node.bindings[0].cast || !is_pure(node.bindings[0].value));
    if (last_cast_) node.needs.push_back(*last_cast_);
    if (is_fixed && last_fixed_) node.needs.push_back(*last_fixed_);
    if (is_fixed) last_fixed_ = nodes_.size();
    if (is_fixed && node.bindings[0].cast) last_cast_ = nodes_.size();
    for (const Binding& binding : node.bindings) node_of_.insert_or_assign(binding.var.get(), nodes_.size());
    nodes_.push_back(std::move(node));
  }

  // Returns the bindings of a call that computes the nodes; none where the compiler leaves them to relaxc.
  std::vector<Binding> call_of(const std::vector<size_t>& members, const VarSet& used, IRModule& module) const {
    ExternalPart part;
    VarSet known;  // inputs and results
    for (size_t member : members) {
      const Node& node = nodes_[member];
      VarSet inside;
      for (const Binding& binding : node.match->match.inside) {
        for (const VarRef& var : tensors_used(binding.value)) {
          if (!inside.contains(var.get()) && known.insert(var.get()).second) part.inputs.push_back(var);
        }
        inside.insert(binding.var.get());
      }
      for (const Binding& binding : node.bindings) {
        known.insert(binding.var.get());
        if (used.contains(binding.var.get())) part.outputs.push_back(binding.var);
      }
      part.matches.push_back(*node.match);
    }
    if (part.outputs.empty()) return {};
    auto made = call_backend(compiler_, part.outputs.back().span(), [&] { return compiler_.compile(part); });
    const std::string* why = std::get_if<1>(&made);
    for (size_t member : members) {
      for (const Binding& binding : nodes_[member].bindings) report(binding, why ? *why : "");
    }
    return why ? std::vector<Binding>() : call_of(part, std::get<0>(made), module);
  }

  std::vector<Binding> call_of(const ExternalPart& part, const std::vector<std::byte>& bytes, IRModule& module) const {
    const VarRef& last = part.outputs.back();
    if (bytes.empty())
      fail(last.span(), "backend '{}' compiled the part of '{}' to no bytes; it returns at least one, or why it cannot",
           compiler_.name, last->name);
    Tensor program = Tensor::empty({(std::ssize(bytes) + 63) / 64 * 64}, DType::uint(8));
    std::memset(program.raw(), 0, static_cast<size_t>(program.bytes()));
    std::memcpy(program.raw(), bytes.data(), bytes.size());
    std::vector<Expr> tensors = {constant(program)};
    tensors.insert(tensors.end(), part.inputs.begin(), part.inputs.end());
    std::vector<Type> types = map_each(part.outputs, [](const VarRef& var) { return var.type(); });
    std::vector<Span> places;
    for (const ExternalMatch& each : part.matches) {
      for (const Binding& binding : each.match.inside) places.push_back(binding.var.span());
    }
    Expr call = make_call_tir(module, compiler_.name + "_" + last->name, program_of(part, program.size()), tensors,
                              types, span_of_nodes(last.span(), places));
    if (types.size() == 1) return {{call, std::nullopt, last}};
    std::vector<Binding> result = {{call, std::nullopt, make_var(compiler_.name, call.type(), last.span())}};
    for (size_t i = 0; i < types.size(); ++i)
      result.push_back({tuple_get(result[0].var, static_cast<int64_t>(i)), std::nullopt, part.outputs[i]});
    return result;
  }

  // Returns a program that stores the dims of all tensors; call_pass() adds the call when buffers are flat.
  PrimFuncRef program_of(const ExternalPart& part, int64_t num_bytes) const {
    std::vector<VarRef> params = {make_buffer("program", DType::uint(8), {int_imm(num_bytes)})};
    std::vector<Expr> dims;
    for (const std::vector<VarRef>& vars : {part.inputs, part.outputs}) {
      for (const VarRef& var : vars) {
        const std::vector<Expr>& shape = *known_shape(var.type());
        dims.insert(dims.end(), shape.begin(), shape.end());
        params.push_back(make_buffer(var->name, *tensor_dtype(var.type()), shape));
      }
    }
    if (dims.empty()) dims.push_back(int_imm(0));
    Buffer all = make_buffer(kDims, kInt64, {int_imm(std::ssize(dims))});
    std::vector<Stmt> stores;
    for (const Expr& dim : dims) stores.push_back(store(all, dim, {int_imm(std::ssize(stores))}));
    Attrs attrs{{kCompiler, compiler_.name}, {attr_names::kIsScheduled, true}};
    return make_prim_func({std::move(params), root_block({all}, seq(std::move(stores))), std::move(attrs)});
  }

  const std::vector<Binding>& bindings_;
  const VarSet& used_after_;
  const ExternalCompiler& compiler_;
  PassContext& context_;
  Refusals& refusals_;
  std::map<size_t, ExternalMatch> matches_;                 // by the position of the last result
  std::vector<std::pair<size_t, PatternRefusal>> refused_;  // of all patterns, with the position of the last result
  std::vector<Node> nodes_;
  std::unordered_map<const NodeHeader*, size_t> node_of_;  // of a value
  std::optional<size_t> last_fixed_, last_cast_;
};

class Claimer {
 public:
  Claimer(IRModule& module, PassContext& context, const ExternalCompiler& compiler,
          const std::vector<ExternalRule>& rules)
      : module_(module), context_(context), compiler_(compiler), rules_(rules) {}

  Expr sequence(const Expr& seq) {
    return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
      BindingBlock copy = block;
      for (Binding& binding : copy.bindings)
        binding.value = map_sequences(binding.value, [&](const Expr& inner) { return sequence(inner); });
      return BlockClaims(copy, used_after, compiler_, rules_, context_, refusals_).rewritten(module_);
    });
  }

  // TVM's attribute Codegen says that the function is the backend's; what the backend leaves of it is noted.
  void report_left(const FunctionRef& function) const {
    if (!context_.report || function->attrs.get_string(attr_names::kCodegen, "") != compiler_.name) return;
    bool is_reported = false;
    for_each_binding(function->body, [&](const Binding& binding) {
      const Call* call = binding.value.as<Call>();
      if (is_reported || !call || !call->callee.is<OpRef>() || op_name(binding.value) == ops::kCallTir) return;
      is_reported = true;
      const std::string* why = find_value(refusals_, binding.var.get());
      const std::string op(ops::short_name(op_name(binding.value)));
      context_.report(note_at(
          binding.var.span(),
          fmt::format("backend '{0}' does not take {1} of its function (Codegen=\"{0}\"), which is compiled as that of "
                      "other functions is: {2}",
                      compiler_.name, op, why ? *why : "it has no pattern that ends in " + op)));
    });
  }

 private:
  Refusals refusals_;
  IRModule& module_;
  PassContext& context_;
  const ExternalCompiler& compiler_;
  const std::vector<ExternalRule>& rules_;
};

// Adds the call behind the stores of dims.
PrimFuncRef with_call(const PrimFuncRef& program, const ExternalCompiler& compiler) {
  if (program->attrs.get_string(kCompiler, "") != compiler.name) return program;
  std::optional<Buffer> dims;
  walk(program->body, [&](const AllocBuffer& alloc) {
    if (alloc.buffer->name == kDims) dims = alloc.buffer;
  });
  std::vector<Buffer> buffers = buffer_params(program);  // the compiler's bytes, then the tensors
  RELAXC_CHECK(dims && buffers.size() >= 2, "the program of an external call has {} buffers", buffers.size());
  auto address = [](const Buffer& buffer) {
    return intrinsic("tir.address_of", {load(buffer, {int_imm(0)})}, DType::handle());
  };
  Buffer tensors = make_buffer("external_tensors", kInt64, {int_imm(std::ssize(buffers) - 1)});
  std::vector<Stmt> body = {program->body, make(AllocBuffer{tensors, {}})};
  for (size_t i = 1; i < buffers.size(); ++i) {
    Expr word = intrinsic("tir.reinterpret", {address(buffers[i])}, kInt64);
    body.push_back(store(tensors, word, {int_imm(static_cast<int64_t>(i) - 1)}));
  }
  std::vector<Expr> args = {string_imm(compiler.function), address(buffers[0]), address(*dims), address(tensors)};
  Expr call = intrinsic("tir.call_extern", std::move(args), kInt32, program.span());
  Buffer status = make_buffer("external_status", kInt32, {int_imm(1)});
  body.insert(body.begin() + 1, make(AllocBuffer{status, {}}));
  body.push_back(store(status, call, {int_imm(0)}));
  const Expr known = load(status, {int_imm(0)});
  body.push_back(make(Assert{equal(known, int_imm(0, kInt32)),
                             {compiler.name + " could not compute this kernel: its function returned {}"},
                             "",
                             {known}},
                      program.span()));
  PrimFunc result = *program;
  result.body = seq(std::move(body));
  return make_prim_func(std::move(result), program.span());
}

}  // namespace

Pass claim_pass(const ExternalCompiler& compiler, const OpTable& ops) {
  auto claim = [compiler, rules = rules_of(compiler, ops)](IRModule module, PassContext& context) {
    return map_uncomposed(std::move(module), context, [&](const FunctionRef& function, IRModule& result) {
      Claimer claimer(result, context, compiler, rules);
      FunctionRef claimed =
          cast<Function>(map_sequences(function, [&](const Expr& body) { return claimer.sequence(body); }));
      claimer.report_left(claimed);
      return claimed;
    });
  };
  return {.name = "claim_" + compiler.name, .doc = "leave to " + compiler.name + " what it takes", .on_module = claim};
}

Pass call_pass(const ExternalCompiler& compiler) {
  auto call = [compiler](const std::string&, const PrimFuncRef& program, const PassContext&) {
    return with_call(program, compiler);
  };
  return {.name = "call_" + compiler.name, .doc = "call " + compiler.name + " in its kernels", .on_program = call};
}

}  // namespace relaxc
