// Expects: scheduled tensor programs. Guarantees: a loop of the graph of which an iteration does nothing but call
// tensor programs is one tensor program, as the recurrent layers' loops over steps are. Small steps then cost no
// instructions of the virtual machine, and what a step makes lies where the next one reads it.
//
//   loop = R.loop(body, trips, (first,))         state[0, ...] = first[...]
//   body(i, c) = step(x, c, i), which is    ->   for i in range(trips):
//   the next c and the row of iteration i            step on x, state[i % 2, ...], state[(i + 1) % 2, ...]
//                                                    rows[i, ...] = state[(i + 1) % 2, ...]
//                                                c[...] = state[trips % 2, ...]
//
// A result of an iteration that is both a carried value and a row, as above, is stored in one place and copied to the
// other. A carried value that no iteration changes is a tensor like others. Loops over large tensors stay as they are,
// since the virtual machine does not copy those.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/constants.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ops/common.h"
#include "passes/compose.h"
#include "passes/loop_facts.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/work.h"
#include "tir/compute.h"
#include "tir/program.h"

namespace relaxc {

namespace {

constexpr size_t kMostCalls = 8;  // in an iteration; bounds params and code size
// A session's limit of steps cannot end a program, so a loop without rows, which take memory, has at most so many
// trips.
constexpr int64_t kMostTrips = int64_t{1} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 20;  // that an iteration makes; dims that only the run tells count as 1

// Copies a tensor of these dims. A buffer may have several of its kind, of which `item` says which one.
Stmt copy(const Buffer& from, const std::vector<Expr>& item, const Buffer& to, const std::vector<Expr>& to_item,
          const std::vector<Expr>& dims) {
  ComputeBuilder b;
  b.block("T_copy", dims, {}, [&](Axes i, Axes) {
    return ComputeBuilder::Bodies{std::nullopt, store(to, load(from, followed_by(item, i)), followed_by(to_item, i))};
  });
  std::vector<Buffer> none;
  return take_root(b.finish({})->body, none);
}

// Returns a window on one item of a buffer.
MatchBuffer window_on(const Buffer& all, const Expr& at, const Buffer& window) {
  std::vector<Range> ranges = map_each(buffer_type(window).shape, whole_range);
  ranges.insert(ranges.begin(), {at, int_imm(1)});
  return {{all, std::move(ranges)}, window};
}

// Returns whether it is a tensor of known shape of numbers, and items of it begin at bytes.
bool is_known(const Type& type) {
  const std::optional<DType> dtype = tensor_dtype(type);
  return known_shape(type) && dtype && !dtype->is_packed() && !dtype->is_string();
}

// Returns the bytes of a tensor, as far as constant dims tell, or as many as are too many.
int64_t bytes_of(const Type& type) {
  int64_t bytes = tensor_dtype(type)->bytes();
  for (const Expr& dim : *known_shape(type))
    bytes = std::min(kMostBytes + 1, bytes * std::clamp<int64_t>(as_int(dim).value_or(1), 0, kMostBytes + 1));
  return bytes;
}

// A program that an iteration calls.
struct Part {
  std::string name, rule;
  Work work;                  // empty where it is not known
  std::vector<Expr> tensors;  // of its buffer params
  Span span = {};
};

// An iteration of a loop, in the terms of the function that has the loop.
struct Step {
  VarRef i = make_var("i", prim_type(kInt64));
  // For each carried value of the loop: what it is, if no iteration changes it.
  std::vector<std::optional<Expr>> constant = {};
  // Of the others: the value before the loop, and a variable for that before an iteration.
  std::vector<Expr> first = {}, carried = {};
  std::vector<Expr> results = {};  // their next values, then the rows
  ProgramComposer composer = {};   // of the parts
  std::vector<Part> parts = {};
};

// Reads the body of a loop.
class StepReader {
 public:
  explicit StepReader(const IRModule& module) : module_(module) {}

  // Returns nullopt where the body does more than calling scheduled tensor programs, or a type is not known.
  std::optional<Step> read(const Call& loop, const Closure& closure) {
    const Expr* called = module_.find(closure.function);
    auto function = called ? try_cast<Function>(*called) : std::nullopt;
    std::optional<Expr> body = function ? body_of(with_fresh_variables(*function), loop, closure) : std::nullopt;
    if (!body || !std::ranges::all_of(bindings_of(*body), [&](const Binding& binding) { return add(binding); }))
      return std::nullopt;
    const Tuple* results = cast<SeqExpr>(*body)->body.as<Tuple>();
    for (size_t k = 0; k < results->items.size(); ++k) {
      if (k >= step_.constant.size() || !step_.constant[k]) step_.results.push_back(replaced_(results->items[k]));
    }
    for (size_t k = 0; k < step_.results.size(); ++k) {
      const Type& type = step_.results[k].type();
      const bool fits = k >= step_.carried.size() || structural_equal(type, step_.carried[k].type());
      if (!is_known(type) || !fits) return std::nullopt;
      bytes_ += bytes_of(type);
    }
    const bool has_rows = step_.results.size() > step_.carried.size();
    const bool ends_soon = has_rows || as_int(loop.args[1]).value_or(kMostTrips + 1) <= kMostTrips;
    const bool is_small = step_.parts.size() <= kMostCalls && bytes_ <= kMostBytes;
    return ends_soon && is_small && !step_.parts.empty() && !step_.results.empty() ? std::optional(std::move(step_))
                                                                                   : std::nullopt;
  }

 private:
  // Returns the body with the number of the iteration, the carried values and what it captures for its params.
  std::optional<Expr> body_of(const FunctionRef& function, const Call& loop, const Closure& closure) {
    const Tuple* first = loop.args[2].as<Tuple>();
    const Tuple* next = cast<SeqExpr>(function->body)->body.as<Tuple>();
    if (!first || !next || function->params.size() != 1 + first->items.size() + closure.captured.size())
      return std::nullopt;
    VarMap map = {{function->params[0].get(), step_.i}};
    for (size_t p = 1; p < function->params.size(); ++p) {
      const VarRef& param = function->params[p];
      const bool is_carried = p <= first->items.size();
      const bool stays = is_carried && same_node(next->items[p - 1], param);
      Expr value = is_carried ? first->items[p - 1] : closure.captured[p - 1 - first->items.size()];
      if (!is_known(value.type()) || !is_known(param.type())) return std::nullopt;
      bind_dims(param.type(), value.type(), map);
      if (is_carried) step_.constant.push_back(stays ? std::optional(value) : std::nullopt);
      if (is_carried && !stays) {
        step_.first.push_back(value);
        value = step_.carried.emplace_back(make_var(param->name, value.type()));
      }
      map.emplace(param.get(), value);
    }
    return substitute(function->body, map);
  }

  // Adds a binding of the body. Returns whether it can be part of a program.
  bool add(const Binding& binding) {
    if (binding.cast) return false;
    const TupleGetItem* get = binding.value.as<TupleGetItem>();
    if (const std::vector<Expr>* items = get ? find_value(items_, get->tuple.get()) : nullptr) {
      replaced_.add(binding.var, items->at(static_cast<size_t>(get->index)));
      return true;
    }
    const bool is_call = as_call(binding.value, ops::kCallTir) != nullptr;
    std::optional<KernelCall> call = is_call ? as_spread_kernel_call(replaced_(binding.value), module_) : std::nullopt;
    std::optional<PrimFuncRef> program = call ? called_program(call->callee, module_) : std::nullopt;
    if (!program || !can_be_part(*call, *program)) return false;
    std::vector<Expr> made =
        map_each(call->outputs, [&](const Type& type) -> Expr { return make_var(binding.var->name, type); });
    step_.composer.add(*call, *program, made);
    for (const Type& type : call->outputs) bytes_ += bytes_of(type);
    step_.parts.push_back(part_of(*call, *program, made));
    step_.parts.back().span = span_of(binding);
    if (made.size() == 1) replaced_.add(binding.var, made[0]);
    items_.emplace(binding.var.get(), std::move(made));
    return true;
  }
  static Part part_of(const KernelCall& call, const PrimFuncRef& program, const std::vector<Expr>& made) {
    Part part{call.name(), program->attrs.get_string(attr_names::kRule, ""), {}, {}};
    for (const KernelOperand& operand : match_kernel(call, program).operands)
      part.tensors.push_back((operand.is_output ? made : call.tensors)[operand.number]);
    const AttrValue* work = program->attrs.find(attr_names::kWork);
    const Attrs* formulas = work ? work->as<Attrs>() : nullptr;
    if (!formulas) return part;
    part.work.operations = formulas->get_string("operations", "");
    if (const AttrValue* accesses = formulas->find("accesses")) from_attr(*accesses, part.work.accesses);
    return part;
  }
  static bool can_be_part(const KernelCall& call, const PrimFuncRef& program) {
    auto is_known_tensor = [](const Expr& tensor) { return is_known(tensor.type()); };
    if (!program->attrs.has(attr_names::kIsScheduled) || !std::ranges::all_of(call.tensors, is_known_tensor) ||
        !std::ranges::all_of(call.outputs, is_known))
      return false;
    const KernelMatch match = match_kernel(call, program);
    return !match.operands.empty() && match.contradictions.empty() && unproven_dims(match).empty();
  }

  const IRModule& module_;
  Step step_ = {};
  Substitution replaced_;
  std::unordered_map<const NodeHeader*, std::vector<Expr>> items_;  // of calls, by their variables
  int64_t bytes_ = 0;                                               // that an iteration makes
};

// Makes the program of a loop.
class LoopProgram {
 public:
  LoopProgram(Step step, const Call& loop, const Span& span)
      : step_(std::move(step)), trips_(loop.args[1]), span_(span_of_nodes(span, map_each(step_.parts, &Part::span))) {}

  // Emits the call of the program, and returns the results of the loop.
  Expr emit(IRModule& module, Builder& builder, const std::string& name) {
    const Expr all = builder.emit(call(module), name);
    std::vector<Expr> made = {all}, results;
    if (const TupleType* type = all.type().as<TupleType>()) {
      made.clear();
      for (size_t k = 0; k < type->items.size(); ++k)
        made.push_back(builder.emit(tuple_get(all, static_cast<int64_t>(k)), name));
    }
    size_t next = 0;
    for (const std::optional<Expr>& value : step_.constant) results.push_back(value ? *value : made[next++]);
    results.insert(results.end(), made.begin() + static_cast<ptrdiff_t>(next), made.end());
    return tuple(std::move(results));
  }

 private:
  Expr call(IRModule& module) {
    const PrimFuncRef step = program_of_step();
    const std::vector<Buffer> buffers = buffer_params(step);  // the inputs, then the results
    const size_t num_inputs = step_.composer.inputs().size();
    for (size_t k = 0; k < step_.carried.size(); ++k) add_state(k);
    for (size_t p = 0; p < num_inputs; ++p) add_input(step_.composer.inputs()[p], buffers[p]);
    std::vector<Stmt> stages = stages_, last;
    for (size_t k = 0; k < step_.results.size(); ++k) add_result(k, buffers[num_inputs + k], last);
    stages.push_back(loop_of(step));
    stages.insert(stages.end(), last.begin(), last.end());
    PrimFuncRef program = make_prim_func({params_, root_block(states_, seq(std::move(stages))), {}}, span_);
    return make_call_tir(module, "loop_of_" + step_.parts[0].name, with_attributes(program), tensors_, types_, span_);
  }

  void add_param(const Buffer& buffer, const Expr& value) {
    params_.push_back(buffer);
    values_.push_back(value);
  }

  void add_state(size_t k) {
    const Type& type = step_.carried[k].type();
    const std::vector<Expr>& dims = *known_shape(type);
    Buffer first = make_buffer("first", *tensor_dtype(type), dims);
    Buffer state = make_buffer("state", *tensor_dtype(type), followed_by({int_imm(2)}, dims));
    add_param(first, step_.carried[k]);
    tensors_.push_back(step_.first[k]);
    states_.push_back(state);
    stages_.push_back(copy(first, {}, state, {int_imm(0)}, dims));
    reads_.push_back(whole_region(state));
    writes_.push_back(whole_region(state));
  }

  void add_input(const Expr& tensor, const Buffer& buffer) {
    for (size_t k = 0; k < states_.size(); ++k) {
      if (!same_node(tensor, step_.carried[k])) continue;
      windows_.push_back(window_on(states_[k], floor_mod(axis_, int_imm(2)), buffer));
      return;
    }
    add_param(buffer, tensor);
    tensors_.push_back(tensor);
    reads_.push_back(whole_region(buffer));
  }

  // Adds the output for the carried value or rows of which the step makes `made`.
  void add_result(size_t k, const Buffer& made, std::vector<Stmt>& last) {
    const BufferType& type = buffer_type(made);
    const bool is_carried = k < states_.size();
    Buffer output = is_carried ? make_buffer("last", type.dtype, type.shape)
                               : make_buffer("rows", type.dtype, followed_by({trips_}, type.shape));
    add_param(output, made_[k]);
    types_.push_back(tensor_type(buffer_type(output).shape, type.dtype));
    if (is_carried) {
      windows_.push_back(window_on(states_[k], floor_mod(axis_ + 1, int_imm(2)), made));
      last.push_back(copy(states_[k], {floor_mod(trips_, int_imm(2))}, output, {}, type.shape));
    } else {
      windows_.push_back(window_on(output, axis_, made));
      writes_.push_back(whole_region(output));
    }
  }

  // Returns a program with one output for each result. One that no call makes, or that is a result twice, is a copy.
  PrimFuncRef program_of_step() {
    for (const Expr& result : step_.results) {
      auto is_it = [&](const Expr& other) { return same_node(other, result); };
      const bool is_made = step_.composer.computes(result) && std::ranges::none_of(made_, is_it);
      made_.push_back(is_made ? result : make_var("copy", result.type()));
      if (!is_made) step_.composer.add(copy_program(result.type()), {result}, made_.back());
    }
    return step_.composer.finish(made_, span_);
  }

  Stmt loop_of(const PrimFuncRef& step) const {
    VarRef i = make_var("i", prim_type(kInt64));
    Block block{.name = "step", .reads = reads_, .writes = writes_, .match_buffers = windows_, .body = no_op()};
    block.iter_vars.push_back({axis_, whole_range(trips_), IterKind::kOpaque, i});
    const Stmt body = turning_back(take_root(step->body, block.alloc_buffers));
    block.body = substitute(body, {{step_.i.get(), axis_}});
    return loop(i, trips_, make(std::move(block), span_));
  }

  // Lets the parallel loops of every second iteration begin with what the caches still hold of the last one: of weights
  // that are a little larger than a cache, only the rest is fetched again.
  static Stmt turning_back(const Stmt& body) {
    const Seq* list = body.as<Seq>();
    std::vector<Stmt> stages = list ? list->stmts : std::vector<Stmt>{body};
    for (Stmt& stage : stages) {
      const For* loop = stage.as<For>();
      if (!loop || loop->kind != ForKind::kParallel) continue;
      stage = edited<For>(stage, [](For& copy) { copy.annotations.set(annotation<"turns_back">(), true); });
    }
    return seq(std::move(stages));
  }

  PrimFuncRef with_attributes(const PrimFuncRef& program) const {
    const Work work = work_of_all();
    PrimFunc result = *program;
    result.attrs.set(attr_names::kIsScheduled, true);
    result.attrs.set(attr_names::kRule, joined(step_.parts, &Part::rule, "; "));
    // The formulas speak of params by number, and make_call_tir drops those for constants of one element.
    if (std::ranges::none_of(tensors_, [](const Expr& tensor) { return constant_element(tensor).has_value(); }))
      result.attrs.set(attr_names::kWork, Attrs{{"operations", work.operations}, {"accesses", to_attr(work.accesses)}});
    return make_prim_func(std::move(result), span_);
  }

  // Returns the work of the parts in all iterations.
  Work work_of_all() const {
    auto shape_of = [](const Expr& tensor) { return *known_shape(tensor.type()); };
    const ParamShapes shapes = map_each(params_, [](const VarRef& param) { return buffer_type(param).shape; });
    const std::string trips = formula_of(trips_, shapes);
    auto times_trips = [&](const std::vector<std::string>& formulas) {
      if (trips.empty() || std::ranges::count(formulas, "") > 0) return std::string();
      return formulas.empty() ? "0" : fmt::format("{} * ({})", trips, fmt::join(formulas, " + "));
    };
    std::vector<std::string> operations;
    std::vector<std::vector<std::string>> accesses(params_.size());
    for (const Part& part : step_.parts) {
      const ParamShapes own = map_each(part.tensors, shape_of);
      operations.push_back(in_terms_of(shapes, part.work.operations, own));
      const bool is_known = part.work.accesses.size() == part.tensors.size();
      for (size_t p = 0; p < params_.size(); ++p) {
        for (size_t t = 0; t < part.tensors.size(); ++t) {
          if (!same_node(part.tensors[t], values_[p])) continue;
          accesses[p].push_back(is_known ? in_terms_of(shapes, part.work.accesses[t], own) : "");
        }
      }
    }
    return {times_trips(operations), map_each(accesses, times_trips)};
  }
  static BufferRegion whole_region(const Buffer& buffer) {
    return {buffer, map_each(buffer_type(buffer).shape, whole_range)};
  }

  Step step_;
  const Expr& trips_;
  Span span_;
  VarRef axis_ = make_var("v_i", prim_type(kInt64));
  std::vector<Expr> made_;  // by an iteration: a tensor for each result
  std::vector<VarRef> params_;
  std::vector<Expr> values_;   // for each param: what an iteration reads there or makes
  std::vector<Expr> tensors_;  // the arguments of the call
  std::vector<Type> types_;    // of its results
  std::vector<Buffer> states_;
  std::vector<Stmt> stages_;  // before the loop
  std::vector<MatchBuffer> windows_;
  std::vector<BufferRegion> reads_, writes_;  // of an iteration
};

class LoopFuser final : public GraphRewriter {
 public:
  LoopFuser(const OpTable& ops, IRModule& module) : GraphRewriter(ops), module_(module) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (auto closure = as_closure(binding.value)) closures_.emplace(binding.var.get(), *closure);
    const Call* loop = as_call(binding.value, ops::kLoop);
    if (!loop || loop->args.size() > 3 || binding.cast) return std::nullopt;
    const Closure* known = find_value(closures_, loop->args[0].get());
    std::optional<Closure> closure = known ? std::optional(*known) : as_closure(loop->args[0]);
    std::optional<Step> step = closure ? StepReader(module_).read(*loop, *closure) : std::nullopt;
    if (!step) return std::nullopt;
    return LoopProgram(std::move(*step), *loop, span_of(binding)).emit(module_, builder, binding.var->name);
  }

 private:
  IRModule& module_;
  std::unordered_map<const NodeHeader*, Closure> closures_;  // by their variables
};

}  // namespace

IRModule fuse_loops(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return LoopFuser(context.ops, result).run(function);
  });
}

}  // namespace relaxc
