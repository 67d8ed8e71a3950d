#include "codegen/open_types.h"

#include <algorithm>
#include <set>

#include "ir/sequence.h"
#include "ir/text/lexer.h"
#include "ir/text/printer.h"
#include "ir/type_relation.h"
#include "ir/visit.h"
#include "passes/graph_rewriter.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

bool is_open(const Type& type) {
  if (const TupleType* tuple = type.as<TupleType>()) return std::ranges::any_of(tuple->items, is_open);
  const TensorType* tensor = type.as<TensorType>();
  return tensor && (!tensor->shape || !tensor->dtype);
}

bool says_more(const Type& type, const Type& than) {
  return fits(than, type) == Verdict::kProven && fits(type, than) != Verdict::kProven;
}

// Returns whether the value is a call of an operator that becomes a kernel, and has a tensor that none can be for.
bool lacks_types(const Expr& value, const Type& type, const OpTable& ops) {
  const OpRow* row = ops.find(op_name(value));
  if (!row || !row->legalize) return false;
  return is_open(type) ||
         std::ranges::any_of(value.as<Call>()->args, [](const Expr& arg) { return is_open(arg.type()); });
}

bool lacks_types(const FunctionRef& function, const OpTable& ops) {
  bool result = false;
  for_each_binding(function->body, [&](const Binding& binding) {
    result = result || lacks_types(binding.value, binding.var.type(), ops);
  });
  return result;
}

// Returns the call with the types that tuples written in it have by now: `R.concat((x, y))` of params with new types.
Expr with_types_of_tuples(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call || std::ranges::none_of(call->args, [](const Expr& arg) { return arg.is<Tuple>(); })) return value;
  Call copy = *call;
  for (Expr& arg : copy.args) {
    const Tuple* several = arg.as<Tuple>();
    if (!several) continue;
    Expr now = tuple(several->items, arg.span());
    if (says_more(now.type(), arg.type())) arg = now;
  }
  return make(std::move(copy), value.type(), value.span());
}

// Gives variables the types of their values where these say more.
class Refiner final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (binding.value.is<Function>()) return std::nullopt;
    if (binding.cast && !says_more(*binding.cast, binding.var.type())) return std::nullopt;
    if (binding.cast) return builder.match_cast(binding.value, *binding.cast, binding.var->name);
    const TupleGetItem* item = binding.value.as<TupleGetItem>();
    const Tuple* several = binding.value.as<Tuple>();
    if (item || several) {
      Expr value = item ? tuple_get(item->tuple, item->index, binding.value.span())
                        : tuple(several->items, binding.value.span());
      return says_more(value.type(), binding.var.type()) ? std::optional(value) : std::nullopt;
    }
    // The type of the call counts, too: legalize gives it to the kernel's result.
    std::optional<Expr> better = with_better_type(with_types_of_tuples(binding.value), binding.value.type(), ops_);
    if (better && fits(binding.var.type(), better->type()) == Verdict::kProven) return better;
    return says_more(binding.value.type(), binding.var.type()) ? std::optional(binding.value) : std::nullopt;
  }
};

FunctionRef refined(const FunctionRef& function, const OpTable& ops) {
  FunctionRef result = Refiner(ops).run(function);
  if (!says_more(result->body.type(), result->result)) return result;
  Function copy = *result;
  copy.result = copy.body.type();
  return make_function(std::move(copy), result.span());
}

// Makes up the types that a function's params lack.
class Completion {
 public:
  Completion(const FunctionRef& function, const std::map<std::string, Type>& given) : function_(function) {
    for (const VarRef& param : function->params) {
      if (const Type* type = find_value(given, param->name)) given_.emplace(param.get(), *type);
    }
    // x2 = R.match_cast(x, R.Tensor((n, m))) says what x is; a param that is given wins.
    for_each_binding(function->body, [&](const Binding& binding) {
      const std::vector<Expr>* dims = binding.cast ? known_shape(*binding.cast) : nullptr;
      auto is_plain = [](const Expr& dim) { return dim.is<Var>() || dim.is<IntImm>(); };
      if (dims && std::ranges::all_of(*dims, is_plain)) known_.emplace(binding.value.get(), *binding.cast);
    });
    for (const VarRef& param : function->params) learn(param);
    for_each_binding(function->body, [&](const Binding& binding) {
      walk(binding.value, [&](const Ref<Var>& var) { used_.insert(var.get()); });
    });
    walk(function->body, [&](const Ref<Constant>& constant) {
      if (!dtype_) dtype_ = constant->data.dtype();
    });
  }

  // `alike`: a param of which nothing says the shape has that of another, else it has new dims.
  FunctionRef function(bool alike) {
    Function copy = *function_;
    VarMap renamed;
    for (VarRef& param : copy.params) {
      if (!used_.contains(param.get()) && !is_given(param)) continue;  // no kernel needs its type
      Type type = complete(param, param.type(), alike);
      if (structural_equal(type, param.type())) continue;
      VarRef now = make_var(param->name, type, param.span());
      renamed.emplace(param.get(), now);
      param = now;
    }
    copy.body = substitute(copy.body, renamed);
    return make_function(std::move(copy), function_.span());
  }
  bool is_given(const VarRef& param) const { return given_.contains(param.get()); }

 private:
  std::vector<Type> said_of(const VarRef& param) const {
    std::vector<Type> result;
    for (const auto* source : {&given_, &known_}) {
      if (const Type* type = find_value(*source, param.get())) result.push_back(*type);
    }
    return result;
  }
  void learn(const VarRef& param) {
    std::vector<Type> types = said_of(param);
    types.push_back(param.type());
    for (const Type& type : types) {
      if (!shape_ && known_shape(type)) shape_ = *known_shape(type);
      if (!dtype_) dtype_ = tensor_dtype(type);
    }
  }

  Type complete(const VarRef& param, const Type& type, bool alike) {
    if (const TupleType* tuple = type.as<TupleType>())
      return tuple_type(map_each(tuple->items, [&](const Type& item) { return complete(param, item, alike); }));
    const TensorType* open = type.as<TensorType>();
    if (!open) return type;
    TensorType result = *open;
    for (const Type& known : said_of(param)) {
      const TensorType* tensor = known.as<TensorType>();
      if (!tensor || (result.ndim >= 0 && tensor->ndim != result.ndim)) continue;
      if (!result.shape) result.shape = tensor->shape;
      if (!result.dtype) result.dtype = tensor->dtype;
    }
    if (!result.dtype) result.dtype = dtype_.value_or(kFloat32);
    if (result.shape) return tensor_type(*known_shape(make(std::move(result))), result.dtype);
    bool fits_rank = shape_ && (result.ndim < 0 || std::ssize(*shape_) == result.ndim);
    if (alike && fits_rank) return tensor_type(*shape_, result.dtype);
    constexpr int64_t kMatrix = 2;  // where nothing says the rank
    int64_t rank = result.ndim >= 0 ? result.ndim : shape_ ? std::ssize(*shape_) : kMatrix;
    std::vector<Expr> dims;
    for (int64_t i = 0; i < rank; ++i) dims.push_back(make_dim(fmt::format("{}{}", param->name, i), param.span()));
    if (!shape_) shape_ = dims;
    return tensor_type(std::move(dims), result.dtype);
  }

  const FunctionRef& function_;
  std::unordered_map<const NodeHeader*, Type> given_, known_;
  VarSet used_;                             // what bindings read
  std::optional<std::vector<Expr>> shape_;  // of the first param that has one
  std::optional<DType> dtype_;
};

void warn_of_types(const std::string& name, const FunctionRef& before, const FunctionRef& after,
                   const Completion& completion, Diagnostics& warnings) {
  for (size_t i = 0; i < before->params.size(); ++i) {
    const VarRef &stated = before->params[i], &now = after->params[i];
    if (same_node(stated, now) || completion.is_given(stated)) continue;
    warnings
        .warning(stated.span(), "'{}' of '{}' is {}; it is compiled as {}", stated->name, name,
                 print_type(stated.type()), print_type(now.type()))
        .notes.push_back(fmt::format("--type '{}=float32[n, 4]' gives another type", stated->name));
  }
}

FunctionRef with_open_types(const std::string& name, const FunctionRef& original,
                            const std::map<std::string, Type>& types, const OpTable& ops, bool is_called,
                            Diagnostics& warnings) {
  FunctionRef function = refined(original, ops);
  bool has_open = std::ranges::any_of(original->params, [](const VarRef& param) { return is_open(param.type()); });
  if (!lacks_types(function, ops) || !has_open || is_called) return function;
  std::string refusal;  // of the last attempt
  for (bool alike : {false, true}) {
    try {
      Completion completion(original, types);
      FunctionRef completed = completion.function(alike), result = refined(completed, ops);
      if (lacks_types(result, ops)) continue;
      warn_of_types(name, original, completed, completion, warnings);
      return result;
    } catch (const CompileError& error) {  // the operators do not take such shapes
      refusal = to_string(error.diagnostics().front());
    }
  }
  const VarRef& param =
      *std::ranges::find_if(original->params, [](const VarRef& each) { return is_open(each.type()); });
  Diagnostics errors;
  Diagnostic& error = errors.error(
      param.span(), "the shape or dtype of '{}' is not known, and '{}' has to be compiled for one", param->name, name);
  if (!refusal.empty())
    error.notes.push_back("the types that were tried do not fit: " + refusal.substr(0, refusal.find('\n')));
  error.notes.push_back(fmt::format("give it: --type '{}=float32[n, 4]', or `{}: R.Tensor((\"n\", 4), \"float32\")`",
                                    param->name, param->name));
  errors.throw_if_errors();
  return function;
}

}  // namespace

void check_params(const IRModule& module, const std::map<std::string, Type>& types) {
  std::set<std::string> params;
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    for (const VarRef& param : graph ? graph->params : std::vector<VarRef>()) params.insert(param->name);
  }
  for (const auto& [param, type] : types)
    if (!params.contains(param)) fail_usage({}, "no function has a param '{}'; there are {}", param, joined(params));
}

IRModule with_open_types(IRModule module, const std::map<std::string, Type>& types, const OpTable& ops,
                         Diagnostics& warnings) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions)
    walk(function, [&](const GlobalVar& callee) { called.insert(callee.name); });
  for (auto& [name, function] : module.functions) {
    auto graph = try_cast<Function>(function);
    if (!graph || !lacks_types(*graph, ops)) continue;
    function = with_open_types(name, *graph, types, ops, called.contains(name), warnings);
  }
  return module;
}

Type parse_type(const std::string& text, std::map<std::string, Expr>& dims) {  // NOLINT: one level for each word
  for (const auto& [word, make_type] :
       {std::pair{"sequence(", &sequence_type}, std::pair{"optional(", &optional_type}}) {
    const size_t size = std::string_view(word).size();
    if (text.starts_with(word) && text.ends_with(')'))
      return make_type(parse_type(text.substr(size, text.size() - size - 1), dims));
  }
  size_t open = std::min(text.find('['), text.size());
  std::optional<DType> dtype = parse_dtype(std::string_view(text).substr(0, open));
  if (!dtype || !text.ends_with(']')) fail_usage({}, "'{}': expected a type such as float32[n, 4]", text);
  std::vector<Expr> shape;
  std::string inner = text.substr(open + 1, text.size() - open - 2);
  std::erase(inner, ' ');
  for (std::string_view part : parts_of(inner, ',')) {
    if (part.empty()) continue;
    std::optional<int64_t> number = text::whole_number(part);
    if (!number && std::isdigit(static_cast<unsigned char>(part[0])))
      fail_usage({}, "'{}': '{}' is not a dim: a number or a name", text, part);
    std::string name(part);
    shape.push_back(number ? int_imm(*number) : dims.try_emplace(name, make_dim(name)).first->second);
  }
  return tensor_type(std::move(shape), dtype);
}

}  // namespace relaxc
