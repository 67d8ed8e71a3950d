// Reads tensor programs from index expressions, as TVM's te has them:
//
//   A = te.placeholder((n, k), name="A")
//   kk = te.reduce_axis((0, k), "kk")
//   C = te.compute((n,), lambda i: te.sum(A[i, kk], axis=kk), name="C")
//   mod = tvm.IRModule({"row_sums": te.create_prim_func([A, C])})
//
// The definitions are kept as syntax. Each te.create_prim_func evaluates those that it needs, so that programs share no
// variables.
#include <algorithm>
#include <ranges>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/parse_te.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_value.h"
#include "support/joined.h"

namespace relaxc::text {

namespace {

constexpr std::pair<std::string_view, const char*> kTeRefused[] = {
    {"T.hybrid", "te.hybrid needs a Python interpreter; write the loops as @T.prim_func"}};

void add_mentioned(const Syntax* at, std::set<std::string_view>& names) {
  if (!at) return;
  if (is_name(*at)) names.insert(at->text);
  for (const Syntax* child : at->children) add_mentioned(child, names);
  for (const Syntax::Keyword& keyword : at->keywords) add_mentioned(keyword.value, names);
}

std::vector<const Syntax*> targets_of(const Syntax& target) {
  if (is_list(target)) return {target.children.begin(), target.children.end()};
  return {&target};
}

}  // namespace

// ---- Definitions

// Returns whether the statement defines something for te, or computes with it.
bool Parser::TeReader::defines(const Line& line) {
  if (line.kind != LineKind::kAssign || !line.value) return false;
  std::vector<const Syntax*> values = in.items(*line.value);
  if (values.empty()) values = {line.value};
  auto makes = [&](const Syntax* value) {
    std::string path = in.callee_path(*value);
    if (const char* const* why = row_of(kTeRefused, path)) in.fail(*value, "{}", *why);
    return defines_tensors(*value) || path == "T.reduce_axis" || path == "T.var" || path == "T.size_var" ||
           path == "T.Var" || path == "T.SizeVar" || path == "T.comm_reducer";
  };
  const Line* const* called = called_function(*line.value);
  bool is_definition = called || std::ranges::all_of(values, makes) || lists_tensors(*line.value);
  // n = A.shape[0] and m, n = A.shape
  const Syntax* owner = line.value->kind == SyntaxKind::kSubscript ? line.value->children[0] : line.value;
  bool is_shape = owner->kind == SyntaxKind::kAttribute && owner->text == "shape" && is_name(*owner->children[0]) &&
                  latest_.contains(owner->children[0]->text);
  if (!is_definition && !is_shape && !is_scalar(*line.value)) return false;
  std::set<std::string_view> names;
  add_mentioned(line.value, names);
  Definition definition{&line, {}};
  for (std::string_view name : names) {
    if (auto known = latest_.find(name); known != latest_.end()) definition.needs.push_back(known->second);
  }
  definitions_.push_back(std::move(definition));
  for (const Syntax* target : targets_of(*line.target))
    latest_.insert_or_assign(in.name_of_target(*target), definitions_.size() - 1);
  return true;
}

// Returns whether the expression is a tensor of topi, or arithmetic or an item of what definitions before it make.
bool Parser::TeReader::defines_tensors(const Syntax& at) const {
  if (makes_stage(at)) return true;
  auto is_one = [&](const Syntax* part) {
    if (part->kind == SyntaxKind::kBinary || part->kind == SyntaxKind::kUnary) return defines_tensors(*part);
    auto known = is_name(*part) ? latest_.find(part->text) : latest_.end();
    return defines_tensors(known == latest_.end() ? *part : *definitions_[known->second].line->value);
  };
  bool is_item = at.kind == SyntaxKind::kSubscript && is_name(*at.children[0]);
  bool is_arithmetic = at.kind == SyntaxKind::kBinary || at.kind == SyntaxKind::kUnary;
  if (at.kind == SyntaxKind::kSubscript && makes_stage(*at.children[0])) return true;
  if (at.kind == SyntaxKind::kConditional) return is_one(at.children[0]) && is_one(at.children[2]);
  if (is_item)
    return is_one(at.children[0]) && calls_topi(*definitions_[latest_.find(at.children[0]->text)->second].line->value);
  return is_arithmetic && std::ranges::any_of(at.children, is_one);
}

// Returns whether the expression is a list of tensors, as in args = [A, B, C].
bool Parser::TeReader::lists_tensors(const Syntax& at) const {
  return is_list(at) && !at.children.empty() && std::ranges::all_of(at.children, [&](const Syntax* item) {
           return is_name(*item) && latest_.contains(item->text);
         });
}

// Returns whether the expression computes a scalar of te's variables and axes, as in cond = te.floormod(k, 2) == 0.
bool Parser::TeReader::is_scalar(const Syntax& at) const {
  std::set<std::string_view> names;
  add_mentioned(&at, names);
  bool is_of_te = std::ranges::any_of(names, [&](std::string_view name) { return latest_.contains(name); });
  if (!is_of_te || is_name(at)) return false;
  std::function<bool(const Syntax&)> computes = [&](const Syntax& part) {
    auto all = [&](auto&& parts) {
      return std::ranges::all_of(parts, [&](const Syntax* each) { return each && computes(*each); });
    };
    if (is_name(part)) return latest_.contains(part.text);
    if (is_call(part)) {
      std::string path = callee(part);
      constexpr std::string_view kForms[] = {"T.if_then_else", "T.Select",    "T.all",       "T.any",     "T.ceildiv",
                                             "T.const",        "T.max_value", "T.min_value", "T.infinity"};
      bool is_function = std::ranges::find(kForms, path) != std::end(kForms) || path == "T.Cast" ||
                         (path.starts_with("T.") && (find_intrinsic("tir." + path.substr(2)) ||
                                                     operator_of(path.substr(2), &BinaryOpInfo::name)));
      return is_function && part.keywords.empty() && all(part.operands());
    }
    if (part.kind == SyntaxKind::kAttribute)
      return is_one_of(part.text, {"shape", "dtype"}) && computes(*part.children[0]);
    bool is_arithmetic = part.kind == SyntaxKind::kUnary || part.kind == SyntaxKind::kBinary ||
                         part.kind == SyntaxKind::kCompare || part.kind == SyntaxKind::kBool ||
                         part.kind == SyntaxKind::kSubscript;
    bool is_literal =
        part.kind == SyntaxKind::kInt || part.kind == SyntaxKind::kFloat || part.kind == SyntaxKind::kString;
    return is_literal || (is_arithmetic && all(part.children));
  };
  return computes(at);
}

const Syntax* Parser::TeReader::scalar_named(std::string_view name) const {
  auto known = latest_.find(name);
  const Line* line = known == latest_.end() ? nullptr : definitions_[known->second].line;
  return line && is_name(*line->target) && is_scalar(*line->value) ? line->value : nullptr;
}

// Returns the call of te.create_prim_func in an expression, or of tvm.build(s, [A, B]); null when there is none.
const Syntax* Parser::TeReader::creation(const Syntax* at) {
  if (!at) return nullptr;
  if (is_call(*at)) {
    if (in.callee_path(*at) == "T.create_prim_func") return at;
    std::string name = spelling(*at->children[0]);
    bool builds =
        name == "tvm.build" || name == "tvm.lower" || name == "tvm.driver.build" || name == "tvm.driver.lower";
    bool has_tensors = builds && in.positional(*at) > 1 && is_list(*at->children[2]) && !latest_.empty();
    // tvm.lower(s, [A]) only prints what it makes of A: the schedule knows the tensors that are computed.
    auto is_input = [&](const Syntax* item) {
      auto known = is_name(*item) ? latest_.find(item->text) : latest_.end();
      return known != latest_.end() && callee(*definitions_[known->second].line->value) == "T.placeholder";
    };
    if (has_tensors && !std::ranges::all_of(at->children[2]->children, is_input)) return at;
  }
  for (const Syntax* child : at->children) {
    if (const Syntax* found = creation(child)) return found;
  }
  for (const Keyword& keyword : at->keywords) {
    if (const Syntax* found = creation(keyword.value)) return found;
  }
  return nullptr;
}

// Reads f = te.create_prim_func([A, B]), tvm.IRModule({"f": f}), mod["f"] = f, and the like.
bool Parser::TeReader::creates(const Line& line) {
  if (line.kind != LineKind::kAssign && line.kind != LineKind::kExpression) return false;
  if (names_programs(line.value)) return true;
  const Syntax* call = creation(line.value);
  bool is_item = line.kind == LineKind::kAssign && line.target->kind == SyntaxKind::kSubscript;
  if (!call && is_item && is_name(*line.value) && programs_.contains(line.value->text)) {  // mod["f"] = f
    rename(programs_.find(line.value->text)->second, in.string(*line.target->children[1]));
    return true;
  }
  if (!call) return false;
  size_t program = create(*call);
  // te.create_prim_func([A, B]).show() only prints it.
  if (line.kind == LineKind::kExpression) created_[program].again = true;
  if (const Syntax* symbol = global_symbol(*line.value)) created_[program].symbol = in.string(*symbol);
  if (is_item && line.target->children[1]->kind == SyntaxKind::kString)
    rename(program, in.string(*line.target->children[1]));
  if (line.kind == LineKind::kAssign && is_name(*line.target))
    programs_.insert_or_assign(std::string(line.target->text), program);
  return true;
}

// Returns the name that .with_attr("global_symbol", "f") or .with_attr({"global_symbol": "f"}) gives; null without one.
const Syntax* Parser::TeReader::global_symbol(const Syntax& at) const {
  if (!is_call(at) || at.children[0]->kind != SyntaxKind::kAttribute) return nullptr;
  const Syntax& method = *at.children[0];
  auto is_key = [](const Syntax* key) { return key->text == "\"global_symbol\"" || key->text == "'global_symbol'"; };
  if (method.text == "with_attr" || method.text == "with_attrs") {
    for (const Syntax* given : at.operands()) {
      for (size_t i = 0; given->kind == SyntaxKind::kDict && i + 1 < given->children.size(); i += 2)
        if (is_key(given->children[i])) return given->children[i + 1];
    }
    if (in.positional(at) == 2 && is_key(at.children[1])) return at.children[2];
  }
  const Syntax* named = in.keyword(at, "name");
  bool builds = named && (method.text == "build" || method.text == "lower");
  return builds ? named : global_symbol(*method.children[0]);
}

// Reads tvm.IRModule({"f": f, "g": te.create_prim_func([...])}).
bool Parser::TeReader::names_programs(const Syntax* at) {
  if (!at || !is_call(*at) || !spelling(*at->children[0]).ends_with("IRModule") || in.positional(*at) != 1)
    return false;
  const Syntax& entries = *at->children[1];
  if (entries.kind != SyntaxKind::kDict) return false;
  bool any = false;
  for (size_t i = 0; i + 1 < entries.children.size(); i += 2) {
    const Syntax& value = *entries.children[i + 1];
    const Syntax* call = creation(&value);
    bool known = is_name(value) && programs_.contains(value.text);
    if (!call && !known) continue;
    rename(call ? create(*call) : programs_.find(value.text)->second, in.string(*entries.children[i]));
    any = true;
  }
  return any;
}

void Parser::TeReader::rename(size_t program, std::string name) { created_[program].symbol = std::move(name); }

// Adds a program whose name one of the text has, too. They stand in no module of TVM together, so both are kept.
void Parser::TeReader::add_beside(const Created& created) {
  if (created.symbol != "main") {
    in.report({created.at, {}, "name it: te.create_prim_func([...]).with_attr(\"global_symbol\", \"f\")"},
              "there are two tensor programs '{}'", created.symbol);
    return;
  }
  std::string name;
  for (int64_t i = 1; name.empty() || in.module_.functions.contains(name); ++i) name = fmt::format("main_{}", i);
  PrimFunc named = *created.program;
  named.attrs.set(attr_names::kGlobalSymbol, name);
  in.module_.functions.emplace(name, make_prim_func(std::move(named), created.program.span()));
  in.diagnostics_.warning(in.span(created.at), "this tensor program is '{}': the text has another 'main'", name);
}

void Parser::TeReader::finish() {
  bool is_alone = created_.empty() && in.module_.functions.empty() && !in.in_class_ && !in.diagnostics_.has_errors();
  if (is_alone) create_default();
  bool computes =
      std::ranges::any_of(definitions_, [&](const Definition& each) { return defines_tensors(*each.line->value); });
  const bool is_nothing = created_.empty() && in.module_.functions.empty() && !in.in_class_;
  if (is_nothing && !functions_.empty()) in.leave_python(*functions_.begin()->second);
  if (is_nothing && computes && !in.diagnostics_.has_errors())
    in.report(
        {*definitions_.back().line, {}, "te.create_prim_func([A, B, C]) makes a program of them: inputs, then outputs"},
        "these definitions are not used by a tensor program");
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < created_.size(); ++i) {
    if (!created_[i].again || !last.contains(created_[i].symbol)) last.insert_or_assign(created_[i].symbol, i);
  }
  for (size_t i = 0; i < created_.size(); ++i) {
    const Created& each = created_[i];
    const Created& later = created_[last.at(each.symbol)];
    if (&each == &later) {
      PrimFunc named = *each.program;
      named.attrs.set(attr_names::kGlobalSymbol, each.symbol);
      PrimFuncRef program = make_prim_func(std::move(named), each.program.span());
      if (!in.module_.functions.try_emplace(each.symbol, program).second && !each.again) add_beside(each);
    } else if (!each.again && !structural_equal(each.program, later.program)) {
      in.diagnostics_
          .warning(in.span(later.at), "there are two tensor programs '{}'; the later one counts", each.symbol)
          .notes.push_back("name each: te.create_prim_func([...]).with_attr(\"global_symbol\", \"f\")");
    }
  }
}

// ---- Programs

// Evaluates what the program needs, and returns its number.
size_t Parser::TeReader::create(const Syntax& call) {
  bool builds = in.callee_path(call) != "T.create_prim_func";
  const Syntax& list = builds ? *call.children[2] : in.required(call, 0, "ops");
  if (builds)
    in.diagnostics_.warning(in.span(call), "the te schedule is not applied; it does not change what is computed")
        .notes.push_back("te.create_prim_func([...]) makes a program, and tvm.tir.Schedule schedules it");
  std::vector<const Syntax*> names;
  add_tensor_names(list, names);
  return create(names, call, builds);
}

// Adds the names of the tensors in a list such as [A, B, out[0]], [A] + list(parts), or f(64) of a function of te. What
// has none gets one.
void Parser::TeReader::add_tensor_names(const Syntax& list, std::vector<const Syntax*>& names) {
  bool is_copy = is_call(list) && is_one_of(list.children[0]->text, {"list", "tuple"}) && in.positional(list) == 1;
  bool is_sum = list.kind == SyntaxKind::kBinary && list.text == "+" &&
                (is_list(*list.children[0]) || is_list(*list.children[1]));
  if (is_list(list) || is_sum || list.kind == SyntaxKind::kStarred) {
    for (const Syntax* item : list.children) add_tensor_names(*item, names);
    return;
  }
  if (is_copy) return add_tensor_names(*list.children[1], names);
  if (!defines_tensors(list)) return names.push_back(&list);
  Line& made = in.tree_->line();
  static_cast<Place&>(made) = list;
  made.kind = LineKind::kAssign;
  Syntax& name = made_name(list, "tensors");
  made.target = &name;
  made.value = &list;
  defines(made);
  names.push_back(&name);
}

// Returns the definitions that the tensors need.
std::set<size_t> Parser::TeReader::needs_of(const std::vector<const Syntax*>& names, const Syntax& call) {
  std::set<size_t> needed;
  std::vector<size_t> work;
  for (const Syntax* name : names) {
    auto known = is_name(*name) ? latest_.find(name->text) : latest_.end();
    if (known == latest_.end()) in.fail(*name, "'{}' is not a tensor of te.placeholder or te.compute", spelling(*name));
    work.push_back(known->second);
  }
  while (!work.empty()) {
    size_t next = work.back();
    work.pop_back();
    if (!needed.insert(next).second) continue;
    constexpr size_t kMost = 4096;
    if (needed.size() > kMost) in.fail(call, "a program has at most {} definitions", kMost);
    work.insert(work.end(), definitions_[next].needs.begin(), definitions_[next].needs.end());
  }
  return needed;
}

size_t Parser::TeReader::create(const std::vector<const Syntax*>& names, const Syntax& call, bool builds) {
  std::set<size_t> needed = needs_of(names, call);
  std::string key;
  for (size_t each : needed) key += fmt::format("{} ", each);
  in.in_graph_ = false;
  in.default_int_ = kInt32;
  in.undefined_.clear();
  in.loops_.clear();
  in.hidden_.clear();
  NameScope scope(in.scopes_);
  begin_program();
  reducers_.clear();
  for (size_t each : needed) evaluate(*definitions_[each].line);
  std::vector<VarRef> params;
  for (const Syntax* name : names) {
    Expr given = in.expr(*name);
    const Tuple* several = given.as<Tuple>();
    for (const Expr& value : several ? several->items : std::vector{given}) {
      if (!value.is<Var>()) in.fail(*name, "'{}' is not a tensor or variable", name->text);
      params.push_back(cast<Var>(value));
      if (std::ranges::count_if(params, [&](const VarRef& param) { return same_node(param, value); }) > 1)
        in.fail(*name, "'{}' is given twice", name->text);
    }
  }
  bool again = std::ranges::any_of(created_, [&](const Created& each) { return builds && each.key == key; });
  created_.push_back({program(params, call), "main", call, key, again});
  return created_.size() - 1;
}

void Parser::TeReader::begin_program() {
  stages_.clear();
  axes_.clear();
  block_names_.clear();
}

PrimFuncRef Parser::TeReader::program(const std::vector<VarRef>& params, const Syntax& call) {
  auto is_param = [&](const Buffer& buffer) {
    return std::ranges::any_of(params, [&](const VarRef& param) { return same_node(param, buffer); });
  };
  std::unordered_set<const NodeHeader*> needed;
  for (const VarRef& param : params) needed.insert(param.get());
  std::vector<Buffer> kept;
  std::vector<Stmt> stmts;
  AttrList states;  // what a stage reads of them it has written before
  for (const Stage& stage : stages_ | std::views::reverse) {
    bool is_needed =
        std::ranges::any_of(stage.buffers, [&](const Buffer& each) { return needed.contains(each.get()); });
    if (!is_needed) continue;
    if (!stage.stmt && !is_param(stage.buffers[0]))
      in.fail(call, "the program reads '{}', which is not among its tensors", stage.buffers[0]->name);
    if (!stage.stmt) continue;
    walk(*stage.stmt, [&](const BufferLoad& load) { needed.insert(load.buffer.get()); });
    std::ranges::copy_if(stage.buffers, std::back_inserter(kept), [&](const Buffer& each) { return !is_param(each); });
    for (const Buffer& each : stage.buffers) {
      if (stage.reads_itself && is_param(each)) states.emplace_back(each->name);
    }
    stmts.push_back(*stage.stmt);
  }
  std::ranges::reverse(kept);
  std::ranges::reverse(stmts);
  if (stmts.empty()) in.fail(call, "the program computes nothing: none of its tensors is of te.compute");
  Block root{.name = kRootBlock, .alloc_buffers = std::move(kept), .body = seq(std::move(stmts), in.span(call))};
  Attrs attrs{{attr_names::kNoAlias, true}};
  if (!states.empty()) attrs.set(attr_names::kOutputBuffers, std::move(states));
  return make_prim_func({params, make(std::move(root), in.span(call)), std::move(attrs)}, in.span(call));
}

// Defines the names of one statement.
void Parser::TeReader::evaluate(const Line& line) {
  std::vector<const Syntax*> targets = targets_of(*line.target);
  if (callee(*line.value) == "T.comm_reducer") {
    in.check_signature("T.comm_reducer", *line.value);
    reducers_.insert_or_assign(in.name_of_target(*targets[0]), line.value);
    return;
  }
  std::vector<Expr> values = values_of(*line.value, is_name(*line.target) ? line.target->text : "");
  if (targets.size() == 1 && values.size() > 1) values = {tuple(values, in.span(line))};  // shape = A.shape
  if (targets.size() != values.size()) in.fail(line, "{} names for {} values", targets.size(), values.size());
  for (size_t i = 0; i < targets.size(); ++i) in.define(in.name_of_target(*targets[i]), values[i]);
}

Syntax& Parser::TeReader::made_name(const Place& at, std::string_view name) {
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = SyntaxKind::kName;
  result.text = in.tree_->text(fmt::format("<{}{}>", name, made_names_++));
  return result;
}

// Returns the values of an expression: tensors, axes, scalars. A variable without a name gets that of the target.
std::vector<Expr> Parser::TeReader::values_of(const Syntax& given, std::string_view target) {
  const Syntax& at = with_stages_first(chosen(given));
  std::string path = callee(at);
  in.check_signature(path, at);
  auto named = [&](const Syntax* name, const char* otherwise) {
    return name ? in.string(*name) : std::string(target.empty() ? otherwise : target);
  };
  if (path == "T.compute") return map_each(compute(at).buffers, [](const Buffer& buffer) -> Expr { return buffer; });
  if (path == "T.scan") return scan(at);
  if (path == "T.extern") return external(at);
  if (path == "T.placeholder") {
    const Syntax *stated = in.arg(at, 1, "dtype"), *name = in.arg(at, 2, "name");
    return {placeholder(name ? in.string(*name) : "placeholder", is_none(stated) ? kFloat32 : in.dtype(*stated),
                        in.dims(in.required(at, 0, "shape"), kInt32), in.span(at))};
  }
  if (path == "T.reduce_axis") {
    Range domain = in.axis_domain(in.required(at, 0, "dom"), kInt32);
    VarRef axis = make_var(named(in.arg(at, 1, "name"), "k"), prim_type(dtype_of(domain.extent)), in.span(at));
    axes_.insert_or_assign(axis.get(), Axis{axis, domain});
    return {axis};
  }
  if (path == "T.var" || path == "T.size_var" || path == "T.Var" || path == "T.SizeVar")
    return {in.te_variable(at, named(in.arg(at, 0, "name"), "n"))};
  const Line* const* function = called_function(at);
  if (function) return run(**function, at);
  if (calls_topi(at)) return topi_stages(at);
  if (is_of_tensors(at) && at.kind == SyntaxKind::kSubscript) return {in.expr(at)};
  if (is_of_tensors(at) && !is_name(at)) return {tensor_arithmetic(at)};
  if (at.kind == SyntaxKind::kAttribute && at.text == "shape") return in.dims(at, kInt32);
  if (at.kind == SyntaxKind::kSubscript && at.children.size() == 2 && at.children[1]->kind == SyntaxKind::kSlice)
    return in.dims(at, kInt32);
  if (!is_list(at)) return {is_name(at) ? in.name(at) : in.scalar(at)};
  std::vector<Expr> result;
  for (const Syntax* item : at.children) {
    for (const Expr& value : values_of(*item, "")) result.push_back(value);
  }
  return result;
}

// Reads te.var("n", "int64"), also where a shape stands: te.placeholder((te.var("n"), 4)).
Expr Parser::te_variable(const Syntax& at, std::string name) {
  const Syntax* stated = arg(at, 1, "dtype");
  return make_var(std::move(name), prim_type(stated ? dtype(*stated) : kInt32), span(at));
}
Value Parser::te_variable_form(const std::string& form, const Syntax& at) {
  if (in_graph_) fail({at, {}, "n = T.int64() makes a dim of a graph function"}, "{} is a variable of te", form);
  const Syntax* name = arg(at, 0, "name");
  return {te_variable(at, name ? string(*name) : "n")};
}

Buffer Parser::TeReader::placeholder(std::string name, DType dtype, std::vector<Expr> shape, const Span& at) {
  Buffer buffer = make_buffer(std::move(name), dtype, std::move(shape), "global", at);
  stages_.push_back({{buffer}, std::nullopt});
  return buffer;
}

// ---- Functions of Python that compute with te

// Keeps def f(A: te.Tensor): ... return te.compute(...), so that calls of it are evaluated.
bool Parser::TeReader::function(const Line& line) {
  if (is_written_for_te(line)) {
    functions_.insert_or_assign(std::string(line.text), &line);
    return true;
  }
  if (line.kind != LineKind::kFunction || !line.decorators.empty() || !in.is_python(line)) return false;
  std::set<std::string_view> names;
  for (const Line* inner : line.body) add_mentioned(inner->value, names);
  bool calls_other = std::ranges::any_of(names, [&](std::string_view name) { return functions_.contains(name); });
  if (!computes_with_te(line) && !calls_other && !names.contains("topi")) return false;
  functions_.insert_or_assign(std::string(line.text), &line);
  return true;
}

bool Parser::TeReader::calls_topi(const Syntax& at) {
  return is_call(at) && !name_in_topi(spelling(*at.children[0])).empty();
}

const Line* const* Parser::TeReader::called_function(const Syntax& at) const {
  return is_call(at) && is_name(*at.children[0]) ? find_value(functions_, at.children[0]->text) : nullptr;
}

std::vector<Expr> Parser::TeReader::run(const Line& function, const Syntax& call) {
  std::vector<Expr> args;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Syntax* given = in.arg(call, i, function.params[i].name);
    if (!given) given = function.params[i].otherwise;
    std::vector<Expr> values = values_of(given ? *given : in.required(call, i, function.params[i].name), "");
    if (values.size() != 1) in.fail(call, "{} values for parameter '{}'", values.size(), function.params[i].name);
    args.push_back(values[0]);
  }
  if (in.positional(call) > args.size())
    in.fail(call, "'{}' takes {} arguments, got {}", function.text, args.size(), in.positional(call));
  return run(function, args, call);
}

std::vector<Expr> Parser::TeReader::run(const Line& function, const std::vector<Expr>& args, const Syntax& at) {
  constexpr int kDeepest = 64;
  if (depth_ >= kDeepest) in.fail(at, "functions of te call each other deeper than {} levels", kDeepest);
  Temporarily depth(depth_, depth_ + 1);
  NameScope scope(in.scopes_);
  for (size_t i = 0; i < args.size(); ++i) in.define(function.params[i].name, args[i]);
  for (const Line* line : function.body) {
    bool prints = line->kind == LineKind::kExpression && head_of(*line->value).text == "print";
    bool is_silent =
        line->kind == LineKind::kAssert || line->kind == LineKind::kPass || in.is_docstring(*line) || prints;
    if (line->kind == LineKind::kReturn && line->value) return values_of(*line->value, "");
    if (line->kind == LineKind::kAssign && line->value) {
      evaluate(*line);
    } else if (!is_silent) {
      in.fail(*line, "a function of te is made of assignments and a return; this needs a Python interpreter");
    }
  }
  in.fail(at, "'{}' returns nothing", function.text);
}

std::string Parser::TeReader::callee(const Syntax& at) const { return in.callee_path(at); }

bool Parser::TeReader::in_program(const Line& line) {
  std::string path = callee(*line.value);
  if (path != "T.reduce_axis" && path != "T.compute") return false;
  if (path != "T.compute") {
    evaluate(line);
    return true;
  }
  in.body_starts();
  size_t before = stages_.size();
  evaluate(line);
  BlockState& block = *in.blocks_.back();
  for (const Stage& stage : stages_ | std::views::drop(before)) {
    if (!stage.stmt) in.fail(line, "a program's inputs are its params, not te.placeholder");
    for (const Buffer& buffer : stage.buffers) {
      Stmt allocation = make(AllocBuffer{buffer, {}}, in.span(line));
      in.blocks_.size() == 1 ? in.root_allocations_.push_back(allocation) : block.block.alloc_buffers.push_back(buffer);
    }
    in.out_->push_back(*stage.stmt);
  }
  stages_.resize(before);
  return true;
}

}  // namespace relaxc::text
