// Exports models of tvm.relax.frontend.nn: python_nn_library.cc has its classes and functions in Python, which are run
// like those of the text. What they cannot say themselves, making a function of the module, stands here.
#include "ir/text/python_nn.h"

#include <algorithm>

#include "ir/text/block_builder.h"
#include "ir/text/names.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kNnPath = "tvm.relax.frontend.nn.", kTestingPath = "tvm.relax.testing.nn.";
constexpr std::string_view kIntrinsics[] = {
    "attributes",      "begin_function", "dict_of",      "dtype_of",       "end_function", "number_of", "is_type",
    "exported_module", "set_attribute",  "function_dim", "function_param", "rank_of",      "unknown"};

// Returns the name that the library has for a path below nn; "" for other paths.
std::string name_in_library(std::string_view path) {
  if (path.starts_with(kTestingPath)) return fmt::format("testing_{}", path.substr(kTestingPath.size()));
  if (path == "argparse.ArgumentParser" || path == "functools.partial")
    return std::string(path.substr(path.find('.') + 1));
  if (!path.starts_with(kNnPath)) return {};
  std::string_view name = path.substr(path.rfind('.') + 1);
  bool of_spec = path.find(".spec.") != path.npos;
  return of_spec && name != "ModuleSpec" ? fmt::format("{}Spec", name) : std::string(name);
}

}  // namespace

// Returns the scope of the library, which is read when it is needed first.
PythonScope& Python::library() {
  if (library_) return *library_;
  library_ = &scopes_.emplace_back();
  Diagnostics errors;
  Lines lines;
  for (std::string_view text : {kNnLibrary, kNnLayers, kNnOperators, kScriptLibrary}) {
    SyntaxReader reader(Source{source_.origin, text}, errors);
    Lines read;
    RELAXC_CHECK(reader.next(*kept_, read) && read.size() == 1 && errors.all().empty(), "the library is read");
    lines.insert(lines.end(), read[0]->body.begin(), read[0]->body.end());
  }
  heap_.allow(400'000);
  Temporarily inside(scope_, library_);
  Temporarily placed(heap_.of_call(), std::optional(call_place_));
  for (std::string_view name : kIntrinsics) {
    PythonValue value = name_value(name, call_place_);
    value.text = kept_->text(fmt::format("relaxc.{}", name));
    library_->values.insert_or_assign(name, value);
  }
  PythonValue relax = name_value(kRelaxPrefix, call_place_);
  relax.text = kRelaxPrefix;
  library_->values.insert_or_assign("R", relax);
  run(lines);
  return *library_;
}

// Returns what a path means: nn.Linear, nn.op.add, nn.spec.Tensor; nullopt for other paths.
PythonResult Python::library_value(std::string_view path) {
  std::string name = name_in_library(path);
  if (name.empty()) return std::nullopt;
  auto found = library().values.find(name);
  return found == library().values.end() ? std::nullopt : PythonResult(found->second);
}

// Ends the export where a model calls what the library does not have.
void Python::require_in_library(const PythonValue& function, const Place& at) {
  if (!is_exporting() || !function.is(Kind::kSyntax) || !function.text.starts_with(kNnPath)) return;
  stuck_ = heap_.place(at);
  stuck_why_ = fmt::format("'nn.{}' is not known here", function.text.substr(kNnPath.size()));
  throw PythonUnknown();
}

// Returns the method of nn.Tensor for a tensor of a model that is being exported.
PythonResult Python::tensor_method(const PythonValue& object, std::string_view name) {
  const bool of_te = te_functions_ > 0 || !binders_.empty();  // elements, and tensors of te
  bool is_tensor =
      is_exporting() && !of_te && object.is(Kind::kSyntax) && object.text.empty() && object.syntax->computed == 0;
  if (!is_tensor || name == "placeholder") return std::nullopt;
  const PythonValue* method = library().values.at("Tensor").type->find(name);
  return method ? PythonResult(*method) : std::nullopt;
}

const Syntax& Python::relax_form(std::string_view name, const Place& at) {
  const Syntax& object = heap_.node(SyntaxKind::kName, at, kRelaxPrefix);
  const Syntax& model = heap_.node(SyntaxKind::kAttribute, at, name);
  return *node_like(model, {&object}, heap_).syntax;
}
const Syntax& Python::relax_call(std::string_view name, const std::vector<const Syntax*>& args, const Place& at) {
  std::vector<const Syntax*> children = {&relax_form(name, at)};
  children.insert(children.end(), args.begin(), args.end());
  return *node_like(heap_.node(SyntaxKind::kCall, at), children, heap_).syntax;
}

PythonValue Python::begin_function(std::string_view name, const Place& at) {
  if (!writes_) throw PythonUnknown();
  Exported& made = exported_.emplace_back();
  made.function = &kept_->line();
  static_cast<Place&>(*made.function) = heap_.place(at);
  made.function->kind = LineKind::kFunction;
  made.function->text = name;
  made.function->decorators.push_back(&relax_form("function", at));
  made.outside = std::exchange(out_, &made.body);
  types_->begin();
  return {};
}

PythonValue Python::function_param(std::string_view name, const PythonValue& type, const Place& at) {
  Line& function = *exported_.back().function;
  std::string wanted = identifier(name), unique = wanted;
  auto is_known = [&](const Param& param) { return param.name == unique; };
  for (int i = 1; std::ranges::any_of(function.params, is_known); ++i) unique = fmt::format("{}_{}", wanted, i);
  std::string_view kept = *taken_.insert(kept_->text(unique)).first;
  function.params.push_back({heap_.place(at), kept, lift(type, at), nullptr, {}});
  types_->param(kept, *function.params.back().annotation);
  return name_value(kept, at);
}

// ---- What is known of tensors before the module is read

// Returns the type of a value of the model, as the reader infers it.
std::optional<Type> Python::type_of(const Syntax& at) {
  std::optional<Expr> value = in_model() ? types_->value(at) : std::nullopt;
  return value ? std::optional(value->type()) : std::nullopt;
}

// Returns the dtype of a tensor of the model, as a text.
PythonResult Python::dtype_of(const Syntax& at) {
  if (auto known = is_name(at) ? tensors_.find(at.text) : tensors_.end(); known != tensors_.end())
    return known->second.dtype;
  std::optional<Type> type = type_of(at);
  std::optional<DType> dtype = type ? tensor_dtype(*type) : std::nullopt;
  if (const PrimType* scalar = type ? type->as<PrimType>() : nullptr) dtype = scalar->dtype;
  return dtype ? PythonResult(heap_.string(to_string(*dtype))) : std::nullopt;
}

// Returns the rank of a tensor of the model.
PythonResult Python::rank_of(const Syntax& at) {
  if (auto known = is_name(at) ? tensors_.find(at.text) : tensors_.end(); known != tensors_.end())
    return known->second.rank;
  std::optional<Type> type = type_of(at);
  const int64_t rank = type && type->is<TensorType>() ? known_rank(*type) : -1;
  return rank >= 0 ? PythonResult(python_int(rank)) : std::nullopt;
}

// Returns the dims of x.shape of a tensor of the model as a list: numbers, and what means the dims in its type.
PythonResult Python::model_dims(const PythonValue& shape) {
  const bool is_shape = in_model() && shape.is(Kind::kSyntax) && shape.syntax->kind == SyntaxKind::kAttribute &&
                        shape.syntax->text == "shape";
  std::optional<Type> type = is_shape ? type_of(*shape.syntax->children[0]) : std::nullopt;
  const std::vector<Expr>* known = type && type->is<TensorType>() ? known_shape(*type) : nullptr;
  if (!known) return std::nullopt;
  std::vector<PythonValue> dims;
  for (size_t i = 0; i < known->size(); ++i) {
    std::optional<int64_t> number = as_int((*known)[i]);
    dims.push_back(number ? python_int(*number) : dim_of(shape, python_int(static_cast<int64_t>(i)), *shape.syntax));
  }
  return heap_.list(Kind::kList, std::move(dims));
}

// Returns what TVM's `s == 1` of dims is in a condition: whether both are the same variable. Of other expressions it
// depends on how they were made.
std::optional<bool> Python::equal_dims(const PythonValue& a, const PythonValue& b) {
  if (!in_model() || (!a.is(Kind::kSyntax) && !b.is(Kind::kSyntax))) return std::nullopt;
  auto scalar = [&](const PythonValue& value) -> std::optional<Expr> {
    if (value.is_whole()) return int_imm(value.whole, kInt64);
    std::optional<Expr> known = value.is(Kind::kSyntax) ? types_->value(*value.syntax) : std::nullopt;
    const bool is_dim = known && known->type().is<PrimType>() && (known->is<Var>() || known->is<IntImm>());
    return is_dim ? known : std::nullopt;
  };
  std::optional<Expr> x = scalar(a), y = scalar(b);
  if (!x || !y) return std::nullopt;
  return as_int(*x) && as_int(*y) ? as_int(*x) == as_int(*y) : same_node(*x, *y);
}

// Remembers what is known of the tensor that a statement of a model binds.
void Python::note_tensor(std::string_view name, const Syntax& value) {
  if (is_exporting() && te_functions_ == 0) types_->bind(name, value);
}

// Ends the function that was begun: its statements are a dataflow block, whose output is the result.
PythonValue Python::end_function(const PythonValue& result, const PythonValue& inputs, const Place& at) {
  std::string_view last = fresh("gv");
  write(assignment(at, last, {.kind = Kind::kSyntax, .syntax = lift(result, at)}));
  const Syntax* name = name_value(last, at).syntax;
  auto statement = [&](LineKind kind, const Syntax* value) -> Line& {
    Line& line = kept_->line();
    static_cast<Place&>(line) = heap_.place(at);
    line.kind = kind;
    line.value = value;
    return line;
  };
  Exported& made = exported_.back();
  made.body.push_back(&statement(LineKind::kExpression, &relax_call("output", {name}, at)));
  PythonValue attrs = heap_.list(Kind::kDict, {heap_.string("num_input"), inputs});
  made.function->body.push_back(&statement(LineKind::kExpression, &relax_call("func_attr", {lift(attrs, at)}, at)));
  for (const Line* dim : made.dims) made.function->body.push_back(dim);
  Line& block = statement(LineKind::kWith, nullptr);
  block.items = {{&relax_call("dataflow", {}, at), nullptr}};
  block.body = made.body;
  made.function->body.push_back(&block);
  made.function->body.push_back(&statement(LineKind::kReturn, name));
  out_ = made.outside;
  const Line* function = made.function;
  exported_.pop_back();
  write(*function);
  ++written_definitions_;
  return {};
}

// Returns the number of tir.max_value("float32") and tir.min_value("int8").
static PythonResult limit_of_dtype(const Syntax& call) {
  const bool low = call.children[0]->text == "min_value";
  const Syntax* stated = call.children.size() == 2 ? call.children[1] : nullptr;
  if ((!low && call.children[0]->text != "max_value") || !stated || stated->kind != SyntaxKind::kString)
    return std::nullopt;
  std::optional<DType> dtype = parse_dtype(stated->text.substr(1, stated->text.size() - 2));
  if (!dtype) return std::nullopt;
  if (dtype->is_float()) return python_float(low ? -largest_of(*dtype) : largest_of(*dtype));
  if (!dtype->is_integral() || dtype->bits > 32) return std::nullopt;
  const int64_t most = (int64_t{1} << (dtype->bits - (dtype->is_int() ? 1 : 0))) - 1;
  return python_int(low ? (dtype->is_int() ? -most - 1 : 0) : most);
}

// What the library calls.
PythonResult Python::intrinsic(std::string_view name, const Args& args, const Place& at) {
  const std::vector<PythonValue>& given = args.positional;
  if (name == "begin_function") return begin_function(given.at(0).text, at);
  if (name == "function_param") return function_param(given.at(0).text, given.at(1), at);
  if (name == "end_function") return end_function(given.at(0), given.at(1), at);
  if (name == "exported_module") return heap_.computed("the exported module", at, heap_.place(at).line);
  if (name == "function_dim") {  // a number that the function gets is a dim of a shape
    PythonValue dim = name_value(*taken_.insert(kept_->text(identifier(given.at(0).text))).first, at);
    function_param(fmt::format("{}_shape", dim.syntax->text), given.at(1), at);
    const Syntax& prefix = heap_.node(SyntaxKind::kName, at, kProgramPrefix);
    const Syntax& form = *node_like(heap_.node(SyntaxKind::kAttribute, at, "int64"), {&prefix}, heap_).syntax;
    PythonValue type = node_like(heap_.node(SyntaxKind::kCall, at), {&form}, heap_);
    exported_.back().dims.push_back(&assignment(at, dim.syntax->text, type));
    return dim;
  }
  if (name == "is_type") return python_bool(given.at(0).is(Kind::kSyntax) && given.at(0).text != "int");
  if (name == "number_of") {  // tir.FloatImm("float32", 10) is 10
    const Syntax* call = given.at(0).is(Kind::kSyntax) && is_call(*given.at(0).syntax) ? given.at(0).syntax : nullptr;
    if (PythonResult limit = call ? limit_of_dtype(*call) : std::nullopt) return limit;
    bool is_number = call && is_one_of(call->children[0]->text, {"FloatImm", "IntImm", "const"});
    if (!is_number) return given.at(0);
    for (const Syntax::Keyword& keyword : call->keywords) {
      if (keyword.name == "value") return eval(*keyword.value);
    }
    return call->children.size() > 1 ? eval(*call->children[call->children[0]->text == "const" ? 1 : 2]) : given.at(0);
  }
  if (name == "dtype_of" || name == "rank_of") {
    PythonResult known = name == "dtype_of" ? dtype_of(*lift(given.at(0), at)) : rank_of(*lift(given.at(0), at));
    return known ? *known : throw PythonUnknown();
  }
  if (name == "set_attribute") return set_member(given.at(0), given.at(1).text, given.at(2)), PythonValue();
  if (name == "attributes") {
    std::vector<PythonValue> pairs;
    for (const auto& [key, value] : given.at(0).object->attributes)
      pairs.push_back(heap_.list(Kind::kTuple, {heap_.string(key), value}));
    return heap_.list(Kind::kList, std::move(pairs));
  }
  if (name == "dict_of") {
    PythonValue result = heap_.list(Kind::kDict, {});
    auto pairs = iterate(given.at(0), heap_);
    for (const PythonValue& pair : *pairs) set_item(result, pair.items->values[0], pair.items->values[1], heap_);
    return result;
  }
  throw PythonUnknown();
}

// Gives b, s, _ = x.shape of a model the dims of the tensor, where its rank is not known.
bool Python::expand_shape(const Syntax& target, const PythonValue& value, const Place& at) {
  bool is_shape = is_exporting() && te_functions_ == 0 && value.is(Kind::kSyntax) &&
                  value.syntax->kind == SyntaxKind::kAttribute && value.syntax->text == "shape";
  if (!is_shape || model_dims(value)) return false;
  for (size_t i = 0; i < target.children.size(); ++i) {
    if (target.children[i]->kind == SyntaxKind::kStarred) throw PythonUnknown();
    assign_to(*target.children[i], dim_of(value, python_int(static_cast<int64_t>(i)), at), at);
  }
  return true;
}

// Returns the tensor under a name, which its dims need: op.relu(x).shape, (x + y).shape.
PythonValue Python::shaped(const PythonValue& tensor, const Place& at) {
  const bool needs_name = in_model() && writes_ && tensor.is(Kind::kSyntax) && tensor.text.empty() &&
                          !is_name(*tensor.syntax) && type_of(*tensor.syntax) &&
                          type_of(*tensor.syntax)->is<TensorType>();
  if (!needs_name) return tensor;
  std::string_view name = fresh("x");
  write(assignment(at, name, tensor));
  note_tensor(name, *tensor.syntax);
  return name_value(name, at);
}

// Returns x.shape[i] of a tensor of a model, which means the dim of its type.
PythonValue Python::dim_of(const PythonValue& shape, const PythonValue& index, const Place& at) {
  if (!index.is_whole()) throw PythonUnknown();
  return node_like(heap_.node(SyntaxKind::kSubscript, at, kKnownDim), {shape.syntax, lift(index, at)}, heap_);
}

}  // namespace relaxc::text
