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
  if (path == "argparse.ArgumentParser") return "ArgumentParser";
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
  for (std::string_view text : {kNnLibrary, kScriptLibrary}) {
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
  return {};
}

PythonValue Python::function_param(std::string_view name, const PythonValue& type, const Place& at) {
  Line& function = *exported_.back().function;
  std::string wanted = identifier(name), unique = wanted;
  auto is_known = [&](const Param& param) { return param.name == unique; };
  for (int i = 1; std::ranges::any_of(function.params, is_known); ++i) unique = fmt::format("{}_{}", wanted, i);
  std::string_view kept = *taken_.insert(kept_->text(unique)).first;
  function.params.push_back({heap_.place(at), kept, lift(type, at), nullptr, {}});
  note_tensor(kept, *function.params.back().annotation);
  return name_value(kept, at);
}

// ---- What is known of tensors before the module is read

namespace {

// Returns the name of an operator in a call that the library makes: "nn.relu"; "" for other syntax.
std::string operator_name(const Syntax& at) {
  if (!is_call(at)) return {};
  std::string path = spelling(*at.children[0]);
  std::string_view prefix = "$R.";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : "";
}

const Syntax* argument(const Syntax& call, size_t position, std::string_view name) {
  for (const Syntax::Keyword& keyword : call.keywords) {
    if (keyword.name == name) return keyword.value;
  }
  return call.children.size() > position + 1 ? call.children[position + 1] : nullptr;
}

}  // namespace

// Returns the dtype of a tensor of the model, as a text; nullopt where an operator may change it.
PythonResult Python::dtype_of(const Syntax& at) {
  if (is_name(at)) {
    auto known = tensors_.find(at.text);
    return known == tensors_.end() ? std::nullopt : known->second.dtype;
  }
  if (at.kind == SyntaxKind::kSubscript || at.kind == SyntaxKind::kUnary) return dtype_of(*at.children[0]);
  if (at.kind == SyntaxKind::kBinary) {
    PythonResult left = dtype_of(*at.children[0]);
    return left ? left : dtype_of(*at.children[1]);
  }
  std::string name = operator_name(at);
  auto literal = [&](const Syntax* given) -> PythonResult {
    return given && given->kind == SyntaxKind::kString ? literal_value(*given, heap_) : std::nullopt;
  };
  if (name.empty()) return std::nullopt;
  if (name == "astype" || name == "Tensor" || name == "zeros" || name == "ones")
    return literal(argument(at, 1, "dtype"));
  if (const Syntax* type = argument(at, 99, "out_sinfo"); type && operator_name(*type) == "Tensor")
    return dtype_of(*type);
  if (const Syntax* stated = argument(at, 99, "out_dtype")) return literal(stated);
  bool compares = is_one_of(name, {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"});
  if (compares) return heap_.string("bool");
  bool keeps = name.starts_with("nn.") ||
               is_one_of(name, {"add",     "subtract",     "multiply", "divide", "maximum",      "minimum", "matmul",
                                "reshape", "permute_dims", "take",     "split",  "concat",       "sigmoid", "tanh",
                                "exp",     "log",          "sqrt",     "square", "negative",     "sum",     "max",
                                "min",     "expand_dims",  "squeeze",  "repeat", "broadcast_to", "triu"});
  if (!keeps || at.children.size() < 2) return std::nullopt;
  const Syntax& first = *at.children[1];
  return dtype_of(is_list(first) && !first.children.empty() ? *first.children[0] : first);
}

// Remembers what is known of the tensor that a statement of a model binds.
void Python::note_tensor(std::string_view name, const Syntax& value) {
  if (is_exporting()) tensors_.insert_or_assign(name, Tensor{dtype_of(value), rank_of(value)});
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

// Gives b, s, _ = x.shape of a model the dims of the tensor.
bool Python::expand_shape(const Syntax& target, const PythonValue& value, const Place& at) {
  bool is_shape = is_exporting() && te_functions_ == 0 && value.is(Kind::kSyntax) &&
                  value.syntax->kind == SyntaxKind::kAttribute && value.syntax->text == "shape";
  if (!is_shape) return false;
  for (size_t i = 0; i < target.children.size(); ++i) {
    if (target.children[i]->kind == SyntaxKind::kStarred) throw PythonUnknown();
    assign_to(*target.children[i], dim_of(value, python_int(static_cast<int64_t>(i)), at), at);
  }
  return true;
}

// Returns x.shape[i] of a tensor of a model, which means the dim of its type.
PythonValue Python::dim_of(const PythonValue& shape, const PythonValue& index, const Place& at) {
  if (!index.is_whole()) throw PythonUnknown();
  return node_like(heap_.node(SyntaxKind::kSubscript, at, kKnownDim), {shape.syntax, lift(index, at)}, heap_);
}

}  // namespace relaxc::text
