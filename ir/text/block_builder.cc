// Reads what relax.BlockBuilder builds, by writing it as the function that it is:
//
//   bb = relax.BlockBuilder()
//   x = relax.Var("x", R.Tensor((n, 4), "float32"))
//   with bb.function("main", [x]):                   # @R.function
//       with bb.dataflow():                          # def main(x: R.Tensor((n, 4), "float32")):
//           y = bb.emit(relax.op.add(x, x))          #     with R.dataflow(): y = R.add(x, x)
//           gv = bb.emit_output(y)                   #         gv = y; R.output(gv)
//       bb.emit_func_output(gv)                      #     return gv
#include "ir/text/block_builder.h"
#include "ir/text/parse_te.h"

#include <algorithm>

namespace relaxc::text {

// Returns the method of the builder that an expression calls: "emit"; "" for others.
std::string_view Parser::BuilderReader::method(const Syntax* at) const {
  if (!at || !is_call(*at) || at->children[0]->kind != SyntaxKind::kAttribute) return {};
  const Syntax& object = *at->children[0]->children[0];
  return is_name(object) && builders_.contains(object.text) ? at->children[0]->text : std::string_view();
}

// Reads bb = relax.BlockBuilder(), x = relax.Var("x", type), v = bb.add_func(f, "f"), mod = bb.get().
bool Parser::BuilderReader::defines(const Line& line) {
  if (line.kind == LineKind::kExpression) return method(line.value) == "add_func" || method(line.value) == "show";
  if (line.kind != LineKind::kAssign || !line.value || !is_name(*line.target) || !is_call(*line.value)) return false;
  const Syntax& call = *line.value;
  std::string path = in.dotted(*call.children[0]);
  if (path == "R.BlockBuilder") {
    builders_.emplace(line.target->text);
    return true;
  }
  if (path == "R.shape" || path == "R.ExternFunc") {
    values_.insert_or_assign(std::string(line.target->text), line.value);
    return true;
  }
  if (path == "R.DynTensorType" || is_type_name(path)) {
    named_types_.insert_or_assign(std::string(line.target->text), line.value);
    return true;
  }
  if ((path == "R.Var" || path == "R.DataflowVar") && in.positional(call) >= 1) {
    std::vector<const Syntax*> rest(call.operands().begin() + 1, call.operands().end());
    const Syntax* type = rest.empty() ? in.keyword(call, "struct_info") : rest[0];
    if (const Syntax* const* named = type && is_name(*type) ? find_value(named_types_, type->text) : nullptr)
      type = *named;
    if (!type) in.fail(call, "the variable has no type: relax.Var(\"x\", R.Tensor((n, 4), \"float32\"))");
    if (is_list(*type)) type = early_type(*type, rest.size() > 1 ? *rest[1] : *type);
    vars_.insert_or_assign(std::string(line.target->text), Var{in.string(*call.children[1]), type});
    return true;
  }
  if (method(&call) == "get" || method(&call) == "finalize") return true;
  if (method(&call) != "add_func" || in.positional(call) < 2) return false;
  std::string given = in.string(*call.children[2]);
  if (!is_name(*call.children[1]) || call.children[1]->text != given)
    in.fail(call, "the program is added as '{}'; define it with @T.prim_func under that name", given);
  functions_.insert_or_assign(std::string(line.target->text), call.children[1]);
  return true;
}

// Reads relax.Var("x", [n, 4], relax.DynTensorType(2, "float32")), the form of 2022.
const Syntax* Parser::BuilderReader::early_type(const Syntax& shape, const Syntax& type) {
  Syntax& result = made(SyntaxKind::kCall, shape);
  result.children = {&form("Tensor", shape), &shape};
  const Syntax* const* named = is_name(type) ? find_value(named_types_, type.text) : nullptr;
  const Syntax& stated = named ? **named : type;
  const Syntax* dtype = is_call(stated) ? in.arg(stated, 1, "dtype") : nullptr;
  if (dtype) result.children.push_back(dtype);
  return &result;
}

Syntax& Parser::BuilderReader::made(SyntaxKind kind, const Place& at) {
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = kind;
  return result;
}
// Returns R.name, in a spelling that a variable R does not hide.
Syntax& Parser::BuilderReader::form(const char* name, const Place& at) {
  Syntax& object = made(SyntaxKind::kName, at);
  object.text = kRelaxPrefix;
  Syntax& result = made(SyntaxKind::kAttribute, at);
  result.text = name;
  result.children.push_back(&object);
  return result;
}

// Returns the function that `with bb.function("main", [x]):` builds; null for other statements.
const Line* Parser::BuilderReader::function(const Line& line) {
  if (line.kind != LineKind::kWith || line.items.size() != 1 || method(line.items[0].first) != "function")
    return nullptr;
  const Syntax& call = *line.items[0].first;
  const Syntax *name = in.arg(call, 0, "name"), *params = in.arg(call, 1, "params");
  if (name && is_list(*name)) std::swap(name, params);  // the order of 2022
  Line& result = in.tree_->line();
  static_cast<Place&>(result) = line;
  result.kind = LineKind::kFunction;
  result.decorators.push_back(&form("function", line));
  result.text = *in.made_texts_.insert(name ? in.string(*name) : "main").first;
  for (const Line* inner : line.body) {
    if (method(inner->value) == "emit_func_output" && !params) params = in.arg(*inner->value, 1, "params");
  }
  own_.clear();
  for (const Syntax* param : params ? in.items(*params) : std::vector<const Syntax*>()) {
    auto var = is_name(*param) ? vars_.find(param->text) : vars_.end();
    if (var == vars_.end()) in.fail(*param, "'{}' is not a variable of relax.Var", spelling(*param));
    own_.emplace(var->first, var->second.name);
    result.params.push_back({*param, *in.made_texts_.insert(var->second.name).first, var->second.type});
  }
  result.body = body(line.body);
  return &result;
}

Lines Parser::BuilderReader::body(const Lines& lines) {
  Lines result;
  std::vector<const Syntax*> outputs;
  for (const Line* line : lines) result.push_back(&statement(*line, outputs));
  if (outputs.empty()) return result;
  Line& output = in.tree_->line();
  static_cast<Place&>(output) = *lines.back();
  output.kind = LineKind::kExpression;
  Syntax& call = made(SyntaxKind::kCall, *lines.back());
  call.children.push_back(&form("output", *lines.back()));
  call.children.insert(call.children.end(), outputs.begin(), outputs.end());
  output.value = &call;
  result.push_back(&output);
  return result;
}

const Line& Parser::BuilderReader::statement(const Line& line, std::vector<const Syntax*>& outputs) {
  Line& result = in.tree_->line();
  result = line;
  if (line.kind == LineKind::kWith && line.items.size() == 1 && method(line.items[0].first) == "dataflow") {
    Syntax& call = made(SyntaxKind::kCall, line);
    call.children.push_back(&form("dataflow", line));
    result.items = {{&call, nullptr}};
    result.body = body(line.body);
    return result;
  }
  std::string_view name = method(line.value);
  if (name == "add_func") {
    defines(line);
    result.kind = LineKind::kPass;
    return result;
  }
  const Syntax* value = value_of(line.value);
  if (name == "emit_func_output") {
    result.kind = LineKind::kReturn;
    result.target = nullptr;
  } else if (name == "emit_output") {
    if (line.kind != LineKind::kAssign) {
      result.kind = LineKind::kPass;
      outputs.push_back(value);
    } else {
      outputs.push_back(line.target);
    }
  }
  result.value = value;
  return result;
}

// Returns what bb.emit(value) and the like bind, in terms of R.
const Syntax* Parser::BuilderReader::value_of(const Syntax* at) {
  std::string_view name = method(at);
  if (name == "emit" || name == "emit_output" || name == "emit_func_output" || name == "normalize")
    return value_of(&in.required(*at, 0, "expr"));
  constexpr std::pair<std::string_view, const char*> kForms[] = {{"call_te", "emit_te"},
                                                                 {"emit_match_cast", "match_cast"},
                                                                 {"emit_te", "emit_te"},
                                                                 {"match_cast", "match_cast"},
                                                                 {"match_shape", "match_shape"}};
  const char* const* relax_form = row_of(kForms, name);
  if (!name.empty() && !relax_form) in.fail(*at, "bb.{} is not known here", name);
  if (!relax_form) return replaced(at);
  Syntax& call = made(SyntaxKind::kCall, *at);
  call = *at;
  call.children.front() = &form(*relax_form, *at);
  return replaced(&call);
}

// Returns the syntax with the variables' Python names replaced by those of the params.
const Syntax* Parser::BuilderReader::replaced(const Syntax* at) {
  return in.replaced(at, [&](const Syntax& name) -> const Syntax* {
    if (const Syntax* const* function = find_value(functions_, name.text)) return *function;
    if (const Syntax* scalar = in.te_->scalar_named(name.text)) return replaced(scalar);
    if (const Syntax* const* value = find_value(values_, name.text)) return replaced(*value);
    const std::string* param = find_value(own_, name.text);
    if (!param || *param == name.text) return nullptr;
    Syntax& result = made(SyntaxKind::kName, name);
    result.text = *in.made_texts_.insert(*param).first;
    return &result;
  });
}

}  // namespace relaxc::text
