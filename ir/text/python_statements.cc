// Statements of tensor programs that Python builds by tvm.tir.ir_builder, in the function of a te.extern:
//
//   def body(ins, outs):
//       ib = tvm.tir.ir_builder.create()
//       a, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
//       with ib.for_range(0, n, "i") as i:              # for i in T.serial(0, n):
//           with ib.if_scope(i < 4):                    #     if i < 4:
//               c[i] = a[i] + 1.0                       #         c[i] = a[i] + 1.0
//       return ib.get()
//
// The function is run, and what it builds is written as the statements of a function, which te reads.
#include <algorithm>

#include "ir/text/block_builder.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kFrame = "relaxc.frame", kStatements = "relaxc.statements";

}  // namespace

bool is_frame(const PythonValue& value) { return value.is(PythonValue::kSyntax) && value.text == kFrame; }

// Returns T.name(args...).
const Syntax& Python::program_call(std::string_view name, const std::vector<const Syntax*>& args, const Place& at) {
  const Syntax& prefix = heap_.node(SyntaxKind::kName, at, kProgramPrefix);
  std::vector<const Syntax*> children = {
      node_like(heap_.node(SyntaxKind::kAttribute, at, name), {&prefix}, heap_).syntax};
  children.insert(children.end(), args.begin(), args.end());
  return *node_like(heap_.node(SyntaxKind::kCall, at), children, heap_).syntax;
}

// Returns the argument of a method; None where it is left out.
PythonValue Python::argument_of(const Args& args, size_t i, std::string_view name) {
  for (const auto& [keyword, value] : args.named) {
    if (keyword == name) return value;
  }
  return i < args.positional.size() ? args.positional[i] : PythonValue();
}

PythonValue Python::frame(LineKind kind, const Syntax* value, const Place& at) {
  Line& line = kept_->line();
  static_cast<Place&>(line) = at;
  line.kind = kind;
  line.value = value;
  frames_.push_back(&line);
  return {.kind = Kind::kSyntax,
          .whole = static_cast<int64_t>(frames_.size()) - 1,
          .text = kFrame,
          .syntax = &heap_.node(SyntaxKind::kName, at, "frame")};
}

// Writes `with ib.for_range(0, n) as i:` and the like as the statement that it builds.
Python::Flow Python::with_frame(const PythonValue& value, const Syntax* target, const Line& with) {
  Line& line = *frames_.at(static_cast<size_t>(value.whole));
  if (target && (!is_name(*target) || !line.target)) throw PythonUnknown();
  if (target) bind(target->text, PythonValue{.kind = Kind::kSyntax, .syntax = line.target});
  Lines body;
  {
    Temporarily inner(out_, &body);
    if (run(with.body) != Flow::kNext) throw PythonUnknown();
  }
  if (line.kind == LineKind::kPass) {  // ib.new_scope()
    out_->insert(out_->end(), body.begin(), body.end());
    return Flow::kNext;
  }
  if (line.kind == LineKind::kClause) {  // ib.else_scope()
    if (out_->empty() || out_->back()->kind != LineKind::kIf) throw PythonUnknown();
    Line& branch = kept_->line();
    branch = *out_->back();
    branch.otherwise = std::move(body);
    out_->back() = &branch;
    return Flow::kNext;
  }
  line.body = std::move(body);
  write(line);
  return Flow::kNext;
}

PythonValue Python::range_frame(const Args& args, const Place& at) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"serial", "serial"},         {"parallel", "parallel"}, {"vectorize", "vectorized"},
      {"vectorized", "vectorized"}, {"unroll", "unroll"},     {"unrolled", "unroll"}};
  PythonValue kind = argument_of(args, 4, "kind"), name = argument_of(args, 2, "name");
  if (kind.is(Kind::kNone)) kind = argument_of(args, 4, "for_type");
  const std::string_view* form = kind.is(Kind::kString) ? row_of(kKinds, kind.text) : &kKinds[0].second;
  if (!form) throw PythonUnknown();
  const Syntax *begin = lift(argument_of(args, 0, "begin"), at), *end = lift(argument_of(args, 1, "end"), at);
  PythonValue result = frame(LineKind::kFor, &program_call(*form, {begin, end}, at), at);
  std::string_view hint = name.is(Kind::kString) ? kept_->text(identifier(name.text)) : std::string_view("i");
  frames_.back()->target = name_value(taken_.insert(hint).second ? hint : fresh(hint), at).syntax;
  return result;
}

// Writes memory of the program, and returns its name.
PythonValue Python::allocated(const Args& args, const Place& at) {
  PythonValue shape = argument_of(args, 1, "shape"), name = argument_of(args, 2, "name");
  PythonValue scope = argument_of(args, 3, "scope");
  if (!shape.is_list()) shape = heap_.list(Kind::kTuple, {shape});
  std::string_view hint = name.is(Kind::kString) ? kept_->text(identifier(name.text)) : std::string_view("buf");
  std::string_view own = taken_.insert(hint).second ? hint : fresh(hint);
  const Syntax& call = program_call("alloc_buffer", {lift(shape, at), lift(argument_of(args, 0, "dtype"), at)}, at);
  std::vector<Syntax::Keyword> keywords;
  if (scope.is(Kind::kString) && !scope.text.empty()) keywords.push_back({at, "scope", lift(scope, at)});
  std::vector<const Syntax*> children(call.children.begin(), call.children.end());
  write(assignment(at, own, node_like(call, children, heap_, keywords)));
  return name_value(own, at);
}

// Does what a method of the builder does; throws for those that are not known.
PythonValue Python::build_statement(std::string_view method, const Args& args, const Place& at) {
  if (statements_ == 0) throw PythonUnknown();
  auto syntax = [&](size_t i, std::string_view name) { return lift(argument_of(args, i, name), at); };
  auto statement = [&](const Syntax& call) {
    Line& line = kept_->line();
    static_cast<Place&>(line) = at;
    line.kind = LineKind::kExpression;
    line.value = &call;
    write(line);
    return PythonValue();
  };
  if (method == "for_range") return range_frame(args, at);
  if (method == "if_scope") return frame(LineKind::kIf, syntax(0, "cond"), at);
  if (method == "else_scope") return frame(LineKind::kClause, nullptr, at);
  if (method == "while_loop") return frame(LineKind::kWhile, syntax(0, "condition"), at);
  if (method == "new_scope") return frame(LineKind::kPass, nullptr, at);
  if (method == "allocate") return allocated(args, at);
  if (method == "buffer_ptr") return argument_of(args, 0, "buf");
  if (method == "likely") return {.kind = Kind::kSyntax, .syntax = &program_call("likely", {syntax(0, "expr")}, at)};
  if (method == "get")
    return {.kind = Kind::kSyntax, .text = kStatements, .syntax = &heap_.node(SyntaxKind::kName, at, "statements")};
  if (method == "emit") {
    const Syntax* given = syntax(0, "stmt");
    bool stores = is_call(*given) && given->children[0]->text == "vstore";  // outs[0].vstore(i, value)
    return statement(stores ? *given : program_call("evaluate", {given}, at));
  }
  if (method == "let") {
    PythonValue name = argument_of(args, 0, "var_name");
    if (!name.is(Kind::kString)) throw PythonUnknown();
    std::string_view hint = kept_->text(identifier(name.text)), own = taken_.insert(hint).second ? hint : fresh(hint);
    write(assignment(at, own, argument_of(args, 1, "value")));
    return name_value(own, at);
  }
  if (method != "scope_attr") throw PythonUnknown();
  PythonValue key = argument_of(args, 1, "attr_key");
  bool is_thread = key.is(Kind::kString) && key.text == "thread_extent";
  if (is_thread) return statement(program_call("launch_thread", {syntax(0, "node"), syntax(2, "value")}, at));
  return statement(program_call("attr", {syntax(0, "node"), lift(key, at), syntax(2, "value")}, at));
}

// Runs the function of te.extern(shape, inputs, function), and gives it the function of the statements that it builds.
void Python::run_extern(Args& args, const Place& at) {
  bool is_named = args.positional.size() < 3;
  auto named = std::ranges::find(args.named, "fcompute", &std::pair<std::string_view, PythonValue>::first);
  if (is_named && named == args.named.end()) return;
  PythonValue& function = is_named ? named->second : args.positional[2];
  PythonValue shape = argument_of(args, 0, "shape"), inputs = argument_of(args, 1, "inputs");
  if (!function.is(Kind::kFunction) || !inputs.is_list() || function.function->is_macro) return;
  bool many = shape.is_list() && !shape.items->values.empty() && shape.items->values[0].is_list();
  Line& line = kept_->line();
  static_cast<Place&>(line) = at;
  line.kind = LineKind::kFunction;
  auto names = [&](std::string_view hint, size_t count) {
    std::vector<PythonValue> result;
    for (size_t i = 0; i < count; ++i) {
      std::string_view name = fresh(hint);
      line.params.push_back({at, name, nullptr, nullptr, {}});
      result.push_back(name_value(name, at));
    }
    return heap_.list(Kind::kList, std::move(result));
  };
  Args given;
  given.positional = {names("ins", inputs.items->values.size()), names("outs", many ? shape.items->values.size() : 1)};
  given.places = {at, at};
  Lines lines;
  PythonValue result;
  {
    Temporarily out(out_, &lines);
    Temporarily writing(writes_, true);
    Temporarily alone(binders_, {});
    Temporarily building(statements_, statements_ + 1);
    result = call(*function.function, given);
  }
  if (!result.is(Kind::kSyntax) || result.text != kStatements) throw PythonUnknown();
  line.body = std::move(lines);
  line.text = fresh(function.function->line ? function.function->line->text : std::string_view("statements"));
  line.decorators.push_back(&heap_.node(SyntaxKind::kName, at, kExternStatements));
  keep_function(line);
  function = name_value(line.text, at);
}

}  // namespace relaxc::text
