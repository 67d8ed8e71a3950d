// A graph interpreter for modules whose operators are call_tirs; kernels run in the reference interpreter.
#include <cstring>

#include "passes/graph.h"
#include "support/checked_math.h"
#include "tests/differential/differential.h"
#include "tir/interpreter.h"
#include "tir/lower/lower.h"
#include "vm/index_check.h"
#include "vm/value.h"

namespace relaxc::test {

namespace {

class Evaluator {
 public:
  Evaluator(const IRModule& module, const EvaluateOptions& options) : module_(module), options_(options) {}

  vm::Value function(const FunctionRef& function, const std::vector<vm::Value>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      match_dims(function->params.at(i).type(), inputs[i]);
      values_.insert_or_assign(function->params[i].get(), inputs[i]);
    }
    return sequence(function->body);
  }

 private:
  int64_t number(const Expr& expr) {
    Expr known = simplify(substitute(expr, dims_));
    CHECK(as_int(known), "the value of {} is not known", debug_print(known));
    return *as_int(known);
  }
  std::vector<int64_t> numbers(const std::vector<Expr>& exprs) {
    std::vector<int64_t> result;
    for (const Expr& expr : exprs) result.push_back(number(expr));
    return result;
  }
  void match_dims(const Type& type, const vm::Value& value) {
    const std::vector<Expr>* shape = known_shape(type);
    const Tensor* tensor = value.get_if<Tensor>();
    if (!shape || !tensor) return;
    for (size_t d = 0; d < shape->size(); ++d) {
      if ((*shape)[d].is<Var>()) dims_.emplace((*shape)[d].get(), int_imm(tensor->shape().at(d)));
    }
  }
  vm::Value sequence(const Expr& seq) {
    for (const BindingBlock& block : seq.as<SeqExpr>()->blocks) {
      for (const Binding& binding : block.bindings) {
        vm::Value result = value(binding.value);
        if (binding.cast) match_dims(*binding.cast, result);
        if (const int64_t* scalar = result.get_if<int64_t>())
          dims_.insert_or_assign(binding.var.get(), int_imm(*scalar));
        values_.insert_or_assign(binding.var.get(), result);
      }
    }
    return value(seq.as<SeqExpr>()->body);
  }
  vm::Value value(const Expr& expr) {
    if (auto it = values_.find(expr.get()); it != values_.end()) return it->second;
    if (const Constant* constant = expr.as<Constant>()) return constant->data;
    if (const Tuple* items = expr.as<Tuple>()) {
      std::vector<vm::Value> fields;
      for (const Expr& item : items->items) fields.push_back(value(item));
      return vm::Tuple(std::move(fields));
    }
    if (const TupleGetItem* item = expr.as<TupleGetItem>())
      return value(item->tuple).tuple().fields()[static_cast<size_t>(item->index)];
    if (const ShapeExpr* shape = expr.as<ShapeExpr>()) return numbers(shape->values);
    if (const If* branch = expr.as<If>())
      return sequence(value(branch->condition).tensor().as_int(0) ? branch->then_branch : branch->else_branch);
    if (std::optional<CallTir> call = match_call_tir(expr)) return kernel(*call);
    if (const Call* call = as_call(expr, "relax.reshape"))
      return value(call->args[0]).tensor().reshaped(numbers(*known_shape(expr.type())));
    if (const Call* call = as_call(expr, "relax.check_indices")) {
      vm::Value indices = value(call->args[0]);
      CHECK(!vm::find_bad_index(indices.tensor(), numbers(call->args[1].as<ShapeExpr>()->values)), "indices in range");
      return indices;
    }
    if (const Call* call = as_call(expr, "relax.inspect.tensor_item"))
      return value(call->args[0]).tensor().as_int(call->attrs.get_int("index", 0));
    if (const Call* call = expr.as<Call>(); call && call->callee.is<GlobalVar>()) {
      std::vector<vm::Value> inputs;
      for (const Expr& arg : call->args) inputs.push_back(value(arg));
      return Evaluator(module_, options_).function(module_.graph_function(call->callee.as<GlobalVar>()->name), inputs);
    }
    CHECK(expr.type().is<PrimType>(), "no value for {}", debug_print(expr));
    return number(expr);
  }
  vm::Value kernel(const CallTir& call) {
    PrimFuncRef program = module_.prim_func(call.callee.as<GlobalVar>()->name);
    std::vector<Tensor> buffers;
    for (const Expr& tensor : call.tensors) buffers.push_back(value(tensor).tensor());
    std::vector<vm::Value> outputs;
    for (const Type& type : call.outputs) {
      Tensor output = Tensor::empty(numbers(*known_shape(type)), *tensor_dtype(type));
      if (output.bytes() > 0) std::memset(output.raw(), 0xff, static_cast<size_t>(output.bytes()));
      buffers.push_back(output);
      outputs.push_back(output);
    }
    VarMap map = bind_scalars(program, call);
    std::vector<int64_t> scalars;
    for (const VarRef& var : scalar_arguments(program)) {
      bool is_param = false;
      for (const VarRef& param : program->params) is_param = is_param || same_node(param, var);
      if (is_param || options_.lower) scalars.push_back(number(map.at(var.get())));
    }
    if (options_.lower) {
      // Lowered programs see flat memory.
      program = lower_program(program);
      std::vector<Buffer> params = buffer_params(program);
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (buffer_type(params[i]).shape.size() != buffers[i].shape().size())
          buffers[i] = buffers[i].reshaped({buffers[i].size()});
      }
    }
    interpret(program, buffers, scalars,
              {.reverse_parallel_loops = options_.reverse_parallel_loops, .check_regions = options_.check_regions});
    return outputs.size() == 1 ? outputs[0] : vm::Value(vm::Tuple(std::move(outputs)));
  }

  const IRModule& module_;
  const EvaluateOptions& options_;
  VarMap dims_;
  std::unordered_map<const NodeHeader*, vm::Value> values_;
};

void flatten(const vm::Value& value, std::vector<Tensor>& out) {
  if (const Tensor* tensor = value.get_if<Tensor>()) {
    out.push_back(*tensor);
    return;
  }
  for (const vm::Value& field : value.tuple().fields()) flatten(field, out);
}

}  // namespace

std::vector<Tensor> evaluate_module(const IRModule& module, const std::vector<Tensor>& inputs,
                                    const EvaluateOptions& options) {
  std::vector<Tensor> result;
  flatten(Evaluator(module, options).function(module.graph_function("main"), {inputs.begin(), inputs.end()}), result);
  return result;
}

}  // namespace relaxc::test
