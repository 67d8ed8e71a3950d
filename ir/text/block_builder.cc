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
  constexpr std::string_view kValues[] = {"R.shape",   "R.ExternFunc",    "R.prim_value", "R.str",
                                          "R.dtype",   "R.MatchCast",     "R.VarBinding", "R.BindingBlock",
                                          "R.SeqExpr", "R.DataflowBlock", "I.Op",         "I.Op.get"};
  if (std::ranges::find(kValues, path) != std::end(kValues)) {
    values_.insert_or_assign(std::string(line.target->text), line.value);
    return true;
  }
  if (path == "R.DynTensorType" || (path == "R.Tuple" && !uses_graph(call)) || is_type_name(path)) {
    named_types_.insert_or_assign(std::string(line.target->text), line.value);
    return true;
  }
  if ((path == "R.Var" || path == "R.DataflowVar") && in.positional(call) >= 1) {
    std::vector<const Syntax*> rest(call.operands().begin() + 1, call.operands().end());
    const Syntax* type = rest.empty() ? in.keyword(call, "struct_info") : rest[0];
    if (!type) type = in.keyword(call, "ty");  // as from 2026 on
    if (const Syntax* early = in.keyword(call, "type_annotation")) type = type_of_rank(*early);
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
  const bool is_known = is_name(*call.children[1]) && in.declared_.contains(call.children[1]->text);
  if (!is_known && (!is_name(*call.children[1]) || call.children[1]->text != given))
    in.fail(call, "the program is added as '{}'; define it with @T.prim_func under that name", given);
  if (call.children[1]->text != given) in.renamed_.push_back({in.python_tree_->text(call.children[1]->text), given});
  functions_.insert_or_assign(std::string(line.target->text), call.children[1]);
  return true;
}

// Reads relax.Var("x", type_annotation=relax.DynTensorType(2, "float32")), of 2022.
const Syntax* Parser::BuilderReader::type_of_rank(const Syntax& stated) {
  Syntax& result = made(SyntaxKind::kCall, stated);
  result.children = {&form("Tensor", stated)};
  const Syntax* rank = is_call(stated) ? in.arg(stated, 0, "ndim") : nullptr;
  const Syntax* dtype = is_call(stated) ? in.arg(stated, 1, "dtype") : nullptr;
  if (rank && in.int_literal(*rank) == 0) result.children.push_back(&made(SyntaxKind::kTuple, stated));
  if (rank && in.int_literal(*rank) > 0) result.keywords.push_back({*rank, "ndim", rank});
  if (dtype) result.keywords.push_back({*dtype, "dtype", dtype});
  return &result;
}

// Reads relax.Var("x", [n, 4], relax.DynTensorType(2, "float32")), the form of 2022. In 2021 the dtype was left out.
const Syntax* Parser::BuilderReader::early_type(const Syntax& shape, const Syntax& type) {
  Syntax& result = made(SyntaxKind::kCall, shape);
  result.children = {&form("Tensor", shape), &shape};
  const Syntax* const* named = is_name(type) ? find_value(named_types_, type.text) : nullptr;
  const Syntax& stated = named ? **named : type;
  const Syntax* dtype = is_call(stated) ? in.arg(stated, 1, "dtype") : nullptr;
  if (!dtype) dtype = in.syntax_of(std::string("float32"), shape);
  result.children.push_back(dtype);
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
    bool is_var = inner->kind == LineKind::kAssign && inner->value && in.callee_path(*inner->value) == "R.Var";
    if (is_var) defines(*inner);
    if (method(inner->value) == "emit_func_output" && !params) params = in.arg(*inner->value, 1, "params");
  }
  Temporarily own(own_, {});
  for (const Syntax* param : params ? in.items(*params) : std::vector<const Syntax*>()) {
    auto var = is_name(*param) ? vars_.find(param->text) : vars_.end();
    if (var == vars_.end()) in.fail(*param, "'{}' is not a variable of relax.Var", spelling(*param));
    std::string given = var->second.name;  // parameters of layers may have the same one
    auto is_given = [&](const Param& other) { return other.name == given; };
    for (int i = 1; std::ranges::any_of(result.params, is_given); ++i)
      given = fmt::format("{}_{}", var->second.name, i);
    own_.emplace(var->first, given);
    result.params.push_back({*param, *in.made_texts_.insert(given).first, var->second.type});
  }
  {
    Temporarily making(making_, static_cast<const Line*>(&result));
    result.body = body(line.body);
  }
  if (const Syntax* flag = in.keyword(call, "private")) {
    Syntax& decorator = made(SyntaxKind::kCall, line);
    decorator.children.push_back(&form("function", line));
    decorator.keywords.push_back({*flag, "private", flag});
    result.decorators = {&decorator};
  }
  return &result;
}

Lines Parser::BuilderReader::body(const Lines& lines) {
  Lines result;
  std::vector<const Syntax*> outputs;
  for (const Line* line : lines) {
    if (line->value) add_expressions(*line->value, result);
    result.push_back(&statement(*line, outputs));
    if (line->target && is_name(*line->target)) expressions_.erase(std::string(line->target->text));
  }
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
  if (const Line* inner = function(line)) nested_.push_back(inner);
  bool is_builder = line.kind == LineKind::kAssign && name.empty();
  bool is_silent = line.kind == LineKind::kAssert || (line.kind == LineKind::kExpression && name.empty()) ||
                   (line.kind == LineKind::kWith && method(line.items[0].first) == "function");
  if (name == "add_func" || is_silent || (is_builder && (in.type_variables(line) || defines(line)))) {
    if (name == "add_func") defines(line);
    result.kind = LineKind::kPass;
    return result;
  }
  if (name == "emit" && line.kind == LineKind::kExpression) {  // a binding that nothing uses
    result.kind = LineKind::kAssign;
    Syntax& unused = made(SyntaxKind::kName, line);
    unused.text = "_";
    result.target = &unused;
  }
  if (name == "emit_normalized") return normalized(line, result);
  const Syntax* value = value_of(line.value);
  if (name == "emit_func_output") {
    result.kind = LineKind::kReturn;
    if (line.kind == LineKind::kAssign && is_name(*line.target) && making_) {  // f = bb.emit_func_output(y)
      Syntax& callee = made(SyntaxKind::kName, line);
      callee.text = making_->text;
      functions_.insert_or_assign(std::string(line.target->text), &callee);
    }
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

// Reads bb.emit_normalized(relax.VarBinding(v, value)) as v = value.
const Line& Parser::BuilderReader::normalized(const Line& line, Line& result) {
  const Syntax* binding = &in.required(*line.value, 0, "binding");
  if (const Syntax* const* known = is_name(*binding) ? find_value(values_, binding->text) : nullptr) binding = *known;
  bind_node(*binding, result);
  return result;
}

// Makes the statement that relax.VarBinding(v, value) or relax.MatchCast(v, value, type) stands for.
void Parser::BuilderReader::bind_node(const Syntax& binding, Line& result) {
  std::string path = in.callee_path(binding);
  if (path != "R.VarBinding" && path != "R.MatchCast") in.fail(binding, "expected relax.VarBinding(v, value)");
  result.kind = LineKind::kAssign;
  result.annotation = nullptr;
  result.target = &in.required(binding, 0, "var");
  if (path == "R.VarBinding") {
    result.value = value_of(&in.required(binding, 1, "value"));
    return;
  }
  Syntax& call = made(SyntaxKind::kCall, binding);
  call.children = {&form("match_cast", binding), replaced(&in.required(binding, 1, "value")),
                   replaced(&in.required(binding, 2, "struct_info"))};
  result.value = &call;
}

// ---- relax.Function(params, body, type), as Python builds it

// Remembers v = relax.op.add(x, y) outside of a builder: what a function may be made of.
bool Parser::BuilderReader::keeps_expression(const Line& line) {
  bool is_known = line.kind == LineKind::kAssign && line.value && is_name(*line.target) && uses_graph(*line.value);
  if (is_known) expressions_.insert_or_assign(std::string(line.target->text), Kept{&line, expressions_.size()});
  return is_known;
}

// Returns whether the expression is made of variables and operators of a graph.
bool Parser::BuilderReader::uses_graph(const Syntax& at) const {
  if (is_name(at)) return vars_.contains(at.text) || expressions_.contains(at.text) || values_.contains(at.text);
  std::string path = in.callee_path(at);
  bool is_node = path.starts_with("R.") && path != "R.Function" && path != "R.Var" && path != "R.const";
  bool is_sum = at.kind == SyntaxKind::kBinary || is_list(at) || at.kind == SyntaxKind::kSubscript;
  return (is_node || is_sum ||
          (is_call(at) && is_name(*at.children[0]) && functions_.contains(at.children[0]->text))) &&
         std::ranges::any_of(at.children, [&](const Syntax* child) { return child && uses_graph(*child); });
}

// Returns the function that f = relax.Function([x], body) is; null for other statements.
const Line* Parser::BuilderReader::built_function(const Line& line) {
  const Syntax* made_by = line.kind == LineKind::kAssign ? line.value : nullptr;
  std::string symbol;
  while (made_by && is_call(*made_by) && made_by->children[0]->text == "with_attr" &&
         is_call(*made_by->children[0]->children[0])) {
    bool is_symbol = in.positional(*made_by) == 2 && spelling(*made_by->children[1]).find("global_symbol") == 1;
    if (is_symbol) symbol = in.string(*made_by->children[2]);
    made_by = made_by->children[0]->children[0];
  }
  bool is_function = made_by && in.callee_path(*made_by) == "R.Function";
  if (!is_function) return nullptr;
  const Syntax& call = *made_by;
  Line& result = in.tree_->line();
  static_cast<Place&>(result) = line;
  result.kind = LineKind::kFunction;
  result.decorators.push_back(&form("function", line));
  const Syntax& target = *line.target;
  bool is_item = target.kind == SyntaxKind::kSubscript && target.children[1]->kind == SyntaxKind::kString;
  if (symbol.empty() && is_name(target)) symbol = target.text;
  if (symbol.empty() && is_item) symbol = in.string(*target.children[1]);
  result.text = *in.made_texts_.insert(symbol.empty() ? "main" : symbol).first;
  Temporarily own(own_, {});
  for (const Syntax* param : in.items(in.required(call, 0, "params"))) {
    auto var = is_name(*param) ? vars_.find(param->text) : vars_.end();
    if (var == vars_.end()) in.fail(*param, "'{}' is not a variable of relax.Var", spelling(*param));
    own_.emplace(var->first, var->second.name);
    result.params.push_back({*param, *in.made_texts_.insert(var->second.name).first, var->second.type});
  }
  const Syntax* body = &in.required(call, 1, "body");
  if (const Syntax* const* known = is_name(*body) ? find_value(values_, body->text) : nullptr) body = *known;
  if (in.callee_path(*body) == "R.SeqExpr") {
    add_blocks(in.required(*body, 0, "blocks"), result.body);
    body = &in.required(*body, 1, "body");
  } else {
    add_expressions(*body, result.body);
  }
  Line& last = in.tree_->line();
  static_cast<Place&>(last) = line;
  last.kind = LineKind::kReturn;
  last.value = value_of(body);
  result.body.push_back(&last);
  return &result;
}

void Parser::BuilderReader::add_blocks(const Syntax& blocks, Lines& out) {
  auto known = [&](const Syntax* at) {
    const Syntax* const* value = is_name(*at) ? find_value(values_, at->text) : nullptr;
    return value ? *value : at;
  };
  for (const Syntax* each : in.items(blocks)) {
    const Syntax& block = *known(each);
    if (!is_call(block)) in.fail(*each, "expected relax.BindingBlock([...])");
    for (const Syntax* binding : in.items(in.required(block, 0, "bindings"))) {
      const Syntax& node = *known(binding);
      add_expressions(node, out);
      Line& line = in.tree_->line();
      static_cast<Place&>(line) = *binding;
      bind_node(node, line);
      out.push_back(&line);
    }
  }
}

// Adds the statements of the expressions that one needs, and that do not stand in the function yet.
void Parser::BuilderReader::add_expressions(const Syntax& at, Lines& out) {
  std::map<size_t, const Line*> needed;
  add_needed(at, needed);
  for (const auto& [order, each] : needed) {
    auto is_given = [&](const Line* line) { return line->target && line->target == each->target; };
    if (std::ranges::any_of(out, is_given)) continue;
    Line& binding = in.tree_->line();
    binding = *each;
    binding.value = value_of(each->value);
    out.push_back(&binding);
  }
}

// Adds the expressions that one needs, in the order of the text.
void Parser::BuilderReader::add_needed(const Syntax& at, std::map<size_t, const Line*>& needed) {
  if (const Kept* kept = is_name(at) ? find_value(expressions_, at.text) : nullptr) {
    if (own_.contains(at.text) || !needed.emplace(kept->order, kept->line).second) return;
    return add_needed(*kept->line->value, needed);
  }
  for (const Syntax* child : at.children) {
    if (child) add_needed(*child, needed);
  }
  for (const Syntax::Keyword& keyword : at.keywords) add_needed(*keyword.value, needed);
}

// Returns what bb.emit(value) and the like bind, in terms of R.
const Syntax* Parser::BuilderReader::value_of(const Syntax* at) {
  std::string_view name = method(at);
  if (name == "emit" || name == "emit_output" || name == "emit_func_output" || name == "normalize")
    return value_of(&in.required(*at, 0, name == "emit_func_output" ? "output" : "expr"));
  constexpr std::pair<std::string_view, const char*> kForms[] = {{"call_te", "emit_te"},
                                                                 {"emit_match_cast", "match_cast"},
                                                                 {"emit_te", "emit_te"},
                                                                 {"match_cast", "match_cast"},
                                                                 {"match_shape", "match_shape"}};
  const char* const* relax_form = row_of(kForms, name);
  if (!name.empty() && !relax_form) in.fail(*at, "bb.{} is not known here", name);
  if (!relax_form) return replaced(with_values(at));
  Syntax& call = made(SyntaxKind::kCall, *at);
  call = *at;
  call.children.front() = &form(*relax_form, *at);
  if (name.ends_with("match_cast")) {  // the name of the variable may follow
    if (in.positional(call) > 2) call.children.resize(3);
    std::erase_if(call.keywords, [](const Syntax::Keyword& keyword) { return keyword.name.starts_with("name"); });
  }
  return replaced(with_values(&call));
}

// Returns the syntax with what calls of the builder in it give: bb.emit(relax.op.add(bb.emit(...), y)) binds both.
const Syntax* Parser::BuilderReader::with_values(const Syntax* at) {
  if (!at || at->kind == SyntaxKind::kLambda) return at;
  std::vector<const Syntax*> children;
  bool changed = false;
  auto inner = [&](const Syntax* part) {
    std::string_view name = method(part);
    const Syntax* now = name.empty()         ? with_values(part)
                        : name == "add_func" ? &in.required(*part, 0, "func")
                                             : value_of(part);
    changed = changed || now != part;
    return now;
  };
  for (const Syntax* child : at->children) children.push_back(inner(child));
  std::vector<Syntax::Keyword> keywords(at->keywords.begin(), at->keywords.end());
  for (Syntax::Keyword& keyword : keywords) keyword.value = inner(keyword.value);
  if (!changed) return at;
  Syntax& result = made(at->kind, *at);
  result.text = at->text;
  result.depth = at->depth;
  result.children.assign(children.begin(), children.end());
  result.keywords.assign(keywords.begin(), keywords.end());
  return &result;
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
