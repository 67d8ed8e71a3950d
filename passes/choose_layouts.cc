// Expects: operators on leaves, weights folded to constants. Guarantees: each operator, and each tensor program that is
// elementwise, computes in the plain order or in the layout that its row offers (OpRow::layouts), so that the whole
// graph takes the fewest cycles by the rows' estimates; R.layout_transform stands where a value changes its layout.
//
// The choice is a minimum cut. An operator stands on one side where it takes its offer, and on the other where it stays
// in the plain order; that costs its gain. A value that is needed in another layout than it is made in costs a
// transform, once for all its users: with two sides per operator the cheapest choice is found exactly (Greig, Porteous
// and Seheult, 1989). A user's decision puts an operator on one side. A tensor that one branch of an If lays out is not
// there in the other.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/layouts.h"
#include "passes/compose.h"
#include "passes/graph_decisions.h"
#include "passes/graph_rewriter.h"
#include "passes/layout_programs.h"
#include "passes/min_cut.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

constexpr const char* kRule = "image_layout";
constexpr const char* kDecision = "block";

using Layouts = std::vector<std::optional<Layout>>;  // by tensor argument

int64_t largest_block(const Layout& layout) {
  int64_t block = 1;
  for (size_t axis = 0; axis < layout.axes().size(); ++axis) block = std::max(block, layout.block_of(axis));
  return block;
}

// Returns whether a rule of the user's is for the operator, or decides how it is scheduled.
bool has_rule_for(const std::string& op, const PassContext& context) {
  return std::ranges::any_of(context.schedules, [&](const ScheduleRule& rule) {
    return ops::full_name(operator_of(rule, context)) == ops::full_name(op);
  });
}

// Returns the offer of a call's row; nullopt where a user's rule expects the operator that would be another one.
std::optional<LayoutOffer> offer_of(const Expr& value, const Span& span, const Layouts& layouts,
                                    const PassContext& context, const VarMap& sizes = {}) {
  const Call* call = value.as<Call>();
  const OpRow* row = call ? context.ops.find(op_name(value)) : nullptr;
  if (!row || !row->layouts) return std::nullopt;
  auto offer = row->layouts({OpCall{*call, span}, value.type(), context.target, layouts, sizes});
  const bool is_expected = offer && !offer->becomes.empty() && has_rule_for(row->name, context);
  return is_expected ? std::nullopt : offer;
}

// A call of a tensor program, and the program that it becomes where tensors lie in a layout.
struct KernelOffer {
  KernelCall call;
  LaidOut laid_out;
  std::variant<PrimFuncRef, std::string> program = "a schedule or rule is for it";
};
// Returns nullopt where the call has no tensor of its results' dims that may be had in a layout.
std::optional<KernelOffer> kernel_offer(const Expr& value, const Layouts& layouts, const IRModule& module,
                                        const PassContext& context) {
  std::optional<KernelCall> call = as_kernel_call(value, module);
  std::optional<PrimFuncRef> program = call ? called_program(call->callee, module) : std::nullopt;
  if (!program || call->outputs.empty() || call->tensors.size() != layouts.size()) return std::nullopt;
  const std::vector<Expr>* dims = known_shape(call->outputs[0]);
  auto is_alike = [&](const Type& type) {
    const std::vector<Expr>* other = known_shape(type);
    return dims && other && equal_shapes(type, call->outputs[0]) == Verdict::kProven;
  };
  std::optional<Layout> layout;
  std::vector<bool> tensors;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (!layout && layouts[i] && is_alike(call->tensors[i].type())) layout = layouts[i];
    tensors.push_back(layout && layouts[i] == layout && is_alike(call->tensors[i].type()));
  }
  const bool is_image = layout && layout->rank() == std::ssize(layout->axes()) + 1;  // not a sequence
  if (!is_image || !std::ranges::all_of(call->outputs, is_alike)) return std::nullopt;
  KernelOffer offer{*call, {*layout, *dims, std::move(tensors)}};
  if (!name_in_rules(call->name(), *program, context))
    offer.program = program_in_layout(*call, *program, offer.laid_out);
  return offer;
}

// What an operator may do instead of computing in the plain order.
struct Option {
  VarRef var;
  Layouts known;     // in which its operands may be had
  Layouts operands;  // in which it takes them
  Layout result;
  double gain = 0;
  bool is_decision = false;
  bool is_expected = false;  // by a user's rule, which is for the loops of that form
  bool is_taken = false;
};

// Gathers the options of a function, and decides which are taken.
class LayoutChoice {
 public:
  LayoutChoice(const IRModule& module, const PassContext& context) : module_(module), context_(context) {}

  // Returns the options by the variable of the value.
  std::unordered_map<const NodeHeader*, Option> run(const FunctionRef& function) {
    sizes_ = guessed_sizes(*function);
    add_sequence(function->body);
    std::vector<bool> by_formula = solve(false), taken = solve(true);
    std::unordered_map<const NodeHeader*, Option> result;
    for (size_t i = 0; i < options_.size(); ++i) {
      Option& option = options_[i];
      option.is_taken = taken[i];
      if (option.is_decision) {
        const int64_t block = largest_block(option.result);
        decide(kRule, kDecision, option.var, context_, {0, block}, by_formula[i] ? block : 0,
               option.is_expected ? std::optional<AttrValue>(block) : std::nullopt);
      }
      result.emplace(option.var.get(), std::move(option));
    }
    return result;
  }

 private:
  // A use of a value. Without an option it is in the plain order.
  struct Use {
    std::optional<size_t> option;
    std::optional<Layout> layout;  // where the option is taken
  };
  struct Value {
    VarRef var;
    std::optional<size_t> option;
    std::vector<Use> uses = {};
  };

  void add_sequence(const Expr& seq) {
    const SeqExpr& node = *seq.as<SeqExpr>();
    for (const BindingBlock& block : node.blocks) {
      for (const Binding& binding : block.bindings) add(binding);
    }
    add_plain_uses(node.body);
  }
  void add(const Binding& binding) {
    if (binding.value.is<If>() || binding.value.is<Function>()) {
      (void)map_sequences(binding.value, [&](const Expr& seq) {
        add_sequence(seq);
        return seq;
      });
      if (const If* branch = binding.value.as<If>()) add_plain_uses(branch->condition);
      return;
    }
    const TupleGetItem* item = binding.value.as<TupleGetItem>();
    if (const auto* made = item ? find_value(kernels_, item->tuple.get()) : nullptr) {
      values_.insert_or_assign(binding.var.get(), Value{binding.var, *made});
      return;
    }
    const std::vector<Expr> tensors = tensors_in(binding.value);
    Layouts known = layouts_of(tensors);
    std::optional<Option> option;
    if (!binding.cast && has_known_shapes(binding, tensors)) option = option_of(binding, known);
    if (!option) return add_plain_uses(binding.value);
    const size_t number = options_.size();
    for (size_t i = 0; i < tensors.size(); ++i) add_use(tensors[i], {number, option->operands[i]});
    if (binding.value.type().is<TupleType>()) {
      kernels_.emplace(binding.var.get(), number);
    } else {
      values_.insert_or_assign(binding.var.get(), Value{binding.var, number});
    }
    options_.push_back(std::move(*option));
  }
  std::vector<Expr> tensors_in(const Expr& value) const {
    if (std::optional<KernelCall> kernel = as_kernel_call(value, module_)) return kernel->tensors;
    return value.is<Call>() ? tensors_of(*value.as<Call>()) : std::vector<Expr>();
  }
  static bool has_known_shapes(const Binding& binding, const std::vector<Expr>& tensors) {
    auto is_known = [](const Expr& tensor) { return known_shape(tensor.type()) && tensor_dtype(tensor.type()); };
    return std::ranges::all_of(tensors, is_known) && (binding.var.type().is<TupleType>() || is_known(binding.var));
  }
  Layouts layouts_of(const std::vector<Expr>& tensors) const {
    return map_each(tensors, [&](const Expr& tensor) -> std::optional<Layout> {
      const Value* value = find_value(values_, tensor.get());
      return value && value->option ? std::optional(options_[*value->option].result) : std::nullopt;
    });
  }
  std::optional<Option> option_of(const Binding& binding, const Layouts& known) const {
    if (op_name(binding.value) == ops::kCallTir) {
      std::optional<KernelOffer> offer = kernel_offer(binding.value, known, module_, context_);
      if (!offer || !std::holds_alternative<PrimFuncRef>(offer->program)) return std::nullopt;
      Layouts operands;
      for (bool is_laid_out : offer->laid_out.tensors)
        operands.push_back(is_laid_out ? std::optional(offer->laid_out.layout) : std::nullopt);
      return Option{binding.var, known, operands, offer->laid_out.layout};
    }
    std::optional<LayoutOffer> offer = offer_of(binding.value, binding.var.span(), known, context_, sizes_);
    if (!offer) return std::nullopt;
    const std::string op = offer->becomes.empty() ? op_name(binding.value) : offer->becomes;
    return Option{binding.var,
                  known,
                  offer->operands,
                  offer->result,
                  offer->gain,
                  offer->is_decision,
                  offer->is_decision && has_rule_for(op, context_)};
  }

  void add_use(const Expr& tensor, Use use) {
    const Var* var = tensor.as<Var>();
    if (!var || !known_shape(tensor.type())) return;  // constants are moved while compiling
    auto [value, _] = values_.try_emplace(tensor.get(), Value{cast<Var>(tensor), std::nullopt});
    value->second.uses.push_back(std::move(use));
    if (std::ranges::find(order_, tensor.get()) == order_.end()) order_.push_back(tensor.get());
  }
  void add_plain_uses(const Expr& value) {
    for (const VarRef& var : free_vars(value)) add_use(var, {});
  }

  // Returns which options are taken.
  std::vector<bool> solve(bool by_user) const {
    MinCut cut;
    std::vector<size_t> nodes;
    for (const Option& option : options_) {
      nodes.push_back(cut.add_node());
      if (option.gain > 0) cut.add_cost(MinCut::kSource, nodes.back(), option.gain);
      if (option.gain < 0) cut.add_cost(nodes.back(), MinCut::kSink, -option.gain);
      if (!option.is_decision || !by_user) continue;
      const std::optional<AttrValue> given = given_decision(kRule, kDecision, option.var, context_);
      if (!given && !option.is_expected) continue;
      const bool is_plain = given == AttrValue(0);
      cut.add_cost(is_plain ? nodes.back() : MinCut::kSource, is_plain ? MinCut::kSink : nodes.back(), MinCut::kNever);
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      // Of equal costs, the transform that comes later is taken: its kernel may be fused with the one before.
      const double lateness = static_cast<double>(i) / static_cast<double>(order_.size());
      add_value(cut, nodes, values_.at(order_[i]), 1 + 1e-3 * (1 - lateness));
    }
    const std::vector<bool> sides = cut.solve();
    return map_each(nodes, [&](size_t node) { return static_cast<bool>(sides[node]); });
  }
  // Adds the costs of the transforms of a value. A node stands for each layout in which it may be needed.
  void add_value(MinCut& cut, const std::vector<size_t>& nodes, const Value& value, double weight) const {
    const std::vector<Expr>& dims = *known_shape(value.var.type());
    const DType dtype = tensor_dtype(value.var.type()).value_or(kFloat32);
    std::vector<std::pair<Layout, size_t>> laid_out;
    const std::optional<size_t> plain = value.option ? std::optional(cut.add_node()) : std::nullopt;
    auto transform = [&](const Layout& layout) {
      return weight * cycles_of_transform(layout.to_plain(layout.from_plain(dims)), dtype, context_.target, sizes_);
    };
    if (plain) cut.add_cost(nodes[*value.option], *plain, transform(options_[*value.option].result));
    for (const Use& use : value.uses) {
      const size_t user = use.option ? nodes[*use.option] : MinCut::kSink;
      if (plain) cut.add_cost(*plain, use.layout ? user : MinCut::kSink, MinCut::kNever);
      if (!use.layout) continue;
      auto known = std::ranges::find(laid_out, *use.layout, &std::pair<Layout, size_t>::first);
      if (known == laid_out.end()) {
        known = laid_out.insert(known, {*use.layout, cut.add_node()});
        const bool is_made = value.option && options_[*value.option].result == *use.layout;
        cut.add_cost(known->second, is_made ? nodes[*value.option] : MinCut::kSink, transform(*use.layout));
      }
      cut.add_cost(user, known->second, MinCut::kNever);
    }
  }

  const IRModule& module_;
  const PassContext& context_;
  VarMap sizes_;  // guesses for symbolic dims
  std::vector<Option> options_;
  std::unordered_map<const NodeHeader*, Value> values_;    // by variable
  std::unordered_map<const NodeHeader*, size_t> kernels_;  // options of kernels with several results, by variable
  std::vector<const NodeHeader*> order_;                   // variables that are used, in order
};

// Writes the function with the options that are taken.
class LayoutWriter final : public GraphRewriter {
 public:
  LayoutWriter(const PassContext& context, IRModule& module, std::unordered_map<const NodeHeader*, Option> options)
      : GraphRewriter(context.ops), context_(context), module_(module), options_(std::move(options)) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>()) {
      const Tuple* made = item->tuple.as<Tuple>();  // of a kernel with several results
      return made ? std::optional(made->items[static_cast<size_t>(item->index)]) : std::nullopt;
    }
    const Option* option = find_value(options_, binding.var.get());
    const bool is_kernel = op_name(binding.value) == ops::kCallTir;
    if (is_kernel && !(option && !option->is_taken)) return kernel(binding, b);
    if (!option || !option->is_taken) return std::nullopt;
    const std::optional<LayoutOffer> offer = offer_of(binding.value, binding.var.span(), option->known, context_);
    if (!offer) return std::nullopt;
    const Expr value = offer->emit(laid_out(tensors_of(*binding.value.as<Call>()), offer->operands, b), b);
    return known_as_plain(value, offer->result, *known_shape(binding.value.type()), b, binding.var->name);
  }
  void enter_scope() override { known_.push_back(known_.back()); }
  void leave_scope() override { known_.pop_back(); }

 private:
  using Forms = std::vector<std::pair<Layout, Expr>>;

  std::vector<Expr> laid_out(std::vector<Expr> tensors, const Layouts& layouts, Builder& b) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (layouts[i]) tensors[i] = laid_out(tensors[i], *layouts[i], b);
    }
    return tensors;
  }
  Expr laid_out(const Expr& plain, const Layout& layout, Builder& b) {
    Forms& forms = known_.back()[plain.get()];
    const Expr* known = find_form(forms, layout);
    if (!known) known = &forms.emplace_back(layout, to_layout(plain, layout, b)).second;
    return *known;
  }
  static const Expr* find_form(const Forms& forms, const Layout& layout) {
    auto found = std::ranges::find(forms, layout, &std::pair<Layout, Expr>::first);
    return found == forms.end() ? nullptr : &found->second;
  }
  // Returns the value for operators that read the plain order; it is dead code if there are none.
  Expr known_as_plain(const Expr& value, const Layout& layout, const std::vector<Expr>& dims, Builder& b,
                      const std::string& hint) {
    Expr plain = to_plain_order(value, layout, dims, b, hint);
    known_.back()[plain.get()].emplace_back(layout, value);
    return plain;
  }

  std::optional<Expr> kernel(const Binding& binding, Builder& b) {
    const std::optional<KernelCall> call = as_kernel_call(binding.value, module_);
    if (!call) return std::nullopt;
    const Option* option = find_value(options_, binding.var.get());
    // Without an option this asks why there is none.
    const Layouts known = option ? option->known : map_each(call->tensors, [&](const Expr& tensor) {
      const Forms* forms = find_value(known_.back(), tensor.get());
      return forms && !forms->empty() ? std::optional(forms->front().first) : std::nullopt;
    });
    std::optional<KernelOffer> offer = kernel_offer(binding.value, known, module_, context_);
    if (!offer) return std::nullopt;
    if (const std::string* why = std::get_if<std::string>(&offer->program)) {
      report_plain(*call, binding, offer->laid_out.layout, *why);
      return std::nullopt;
    }
    const LaidOut& form = offer->laid_out;
    std::vector<Expr> tensors = call->tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (form.tensors[i]) tensors[i] = laid_out(tensors[i], form.layout, b);
    }
    auto result_type = [&](const Type& type) {
      return tensor_type(form.layout.from_plain(form.dims), tensor_dtype(type));
    };
    Expr value = b.emit(make_call_tir(module_, call->name(), std::get<PrimFuncRef>(offer->program), tensors,
                                      map_each(call->outputs, result_type), binding.value.span()));
    if (call->outputs.size() == 1) return known_as_plain(value, form.layout, form.dims, b, binding.var->name);
    std::vector<Expr> results;
    for (size_t i = 0; i < call->outputs.size(); ++i) {
      Expr item = b.emit(tuple_get(value, static_cast<int64_t>(i)));
      results.push_back(known_as_plain(item, form.layout, form.dims, b, binding.var->name));
    }
    return tuple(std::move(results));
  }

  // Says that a kernel of the user's is not fused with the convolution before it, and why.
  void report_plain(const KernelCall& call, const Binding& binding, const Layout& layout,
                    const std::string& why) const {
    const KernelRule* rule = kernel_of(call.name(), context_);
    if (!rule || !context_.claimed) return;
    std::string note = fmt::format(
        "it reads the image in the plain order and is not fused with what makes it in blocks of {} channels: {}; "
        "S.use(\"image_layout\", block=0), with at= for one convolution, keeps images in the plain order",
        largest_block(layout), why);
    context_.claimed({binding.var.span(), call.name(), fmt::format("kernel '{}'", rule->name), "", std::move(note)});
  }

  const PassContext& context_;
  IRModule& module_;
  std::unordered_map<const NodeHeader*, Option> options_;
  // By the value in the plain order, in each scope that is open: its other layouts.
  std::vector<std::unordered_map<const NodeHeader*, Forms>> known_{1};
};

}  // namespace

IRModule choose_layouts(IRModule module, PassContext& context) {
  check_places(module, context, {"image_layout", "convolution_algorithm", "constant_operand", "attention_algorithm"});
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    if (is_primitive(*function)) return function;
    return LayoutWriter(context, result, LayoutChoice(result, context).run(function)).run(function);
  });
}

}  // namespace relaxc
