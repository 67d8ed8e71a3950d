#include "passes/read_pattern.h"

#include "ir/op_names.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;
using Kind = PatternNode::Kind;

namespace {

class PatternReader {
 public:
  PatternReader(const ScriptFile& file, const OpTable& ops) : file_(file), ops_(ops) {}

  Pattern run(const Line& definition) {
    for (const text::Param& param : definition.params) {
      PatternNode node{.name = std::string(param.name)};
      if (param.annotation) constrain(*param.annotation, node);
      pattern_.params.push_back(define(std::move(node)));
    }
    lines(definition.body);
    // R.output(y); return y, where y is a tuple
    if (pattern_.results.size() == 1 && pattern_.results[0]->kind == Kind::kTuple)
      pattern_.results = std::vector(pattern_.results[0]->args);
    if (pattern_.results.empty()) fail(file_.span(definition), "pattern '{}' returns nothing", definition.text);
    for (const PatternRef& result : pattern_.results) {
      bool is_param = std::ranges::count(pattern_.params, result) > 0;
      if (is_param)
        fail(file_.span(definition), "pattern '{}' returns its operand '{}'", definition.text, result->name);
      if (std::ranges::count(pattern_.results, result) > 1)
        fail(file_.span(definition), "pattern '{}' returns '{}' twice", definition.text, result->name);
    }
    return std::move(pattern_);
  }

 private:
  PatternRef define(PatternNode node) {
    auto result = std::make_shared<const PatternNode>(std::move(node));
    values_.insert_or_assign(result->name, result);
    return result;
  }

  void lines(const Lines& all) {
    for (const Line* line : all) statement(*line);
  }

  void statement(const Line& line) {
    switch (line.kind) {
      case LineKind::kPass:
        return;
      case LineKind::kWith:  // with R.dataflow():
        return lines(line.body);
      case LineKind::kExpression: {
        std::string called = text::is_call(*line.value) ? std::string(line.value->children[0]->text) : "";
        if (called == "output" || called == "func_attr" || line.value->kind == SyntaxKind::kString) return;
        break;
      }
      case LineKind::kReturn:
        if (!line.value) break;
        for (const Syntax* item : text::is_list(*line.value)
                                      ? std::vector(line.value->children.begin(), line.value->children.end())
                                      : std::vector{line.value})
          pattern_.results.push_back(value(*item));
        return;
      case LineKind::kAssign:
        if (!line.value || !text::is_name(*line.target)) break;
        if (is_dim(*line.value)) {
          dim(std::string(line.target->text));
          return;
        }
        assign(line);
        return;
      default:
        break;
    }
    fail(file_.span(line), "a pattern is made of assignments, name = R.operator(...), and a return");
  }

  // Returns whether the value is T.int64(), which declares a dim.
  static bool is_dim(const Syntax& at) {
    return text::is_call(at) && at.children.size() == 1 &&
           (at.children[0]->text == "int64" || at.children[0]->text == "int32");
  }

  void assign(const Line& line) {
    PatternNode node = *value(*line.value);
    node.name = std::string(line.target->text);
    bool is_alias = text::is_name(*line.value);
    if (line.annotation) constrain(*line.annotation, node);
    if (is_alias && !line.annotation) {
      values_.insert_or_assign(node.name, values_.at(std::string(line.value->text)));
      return;
    }
    define(std::move(node));
  }

  PatternRef make(PatternNode node) { return std::make_shared<const PatternNode>(std::move(node)); }

  // Returns "R.nn.relu" for the callee's syntax.
  static std::string path(const Syntax& at) {
    if (text::is_name(at)) return std::string(at.text);
    return at.kind == SyntaxKind::kAttribute ? path(*at.children[0]) + "." + std::string(at.text) : "";
  }

  PatternRef value(const Syntax& at) {
    switch (at.kind) {
      case SyntaxKind::kName:
        if (const PatternRef* known = find_value(values_, at.text)) return *known;
        if (dims_.contains(at.text)) return make({.name = std::string(at.text), .dim = dim(std::string(at.text))});
        fail(file_.span(at), "'{}' is not defined; operands of a pattern are its params{}", at.text,
             at.text == "metadata" ? ", such as w: S.constant for a constant of the model" : "");
      case SyntaxKind::kInt:
      case SyntaxKind::kFloat:
      case SyntaxKind::kUnary:
        return make({.kind = Kind::kConstant, .number = number(at)});
      case SyntaxKind::kTuple:
      case SyntaxKind::kList:
        return make({.kind = Kind::kTuple, .args = values(at.children)});
      case SyntaxKind::kSubscript:
        return make({.kind = Kind::kItem,
                     .args = {value(*at.children[0])},
                     .index = static_cast<int64_t>(number(*at.children[1]))});
      case SyntaxKind::kBinary: {
        if (at.text == "|") return make({.kind = Kind::kEither, .args = values(at.children)});
        constexpr std::pair<std::string_view, const char*> kOperators[] = {
            {"+", "add"}, {"-", "subtract"}, {"*", "multiply"}, {"/", "divide"}, {"@", "matmul"}};
        if (const char* const* op = text::row_of(kOperators, at.text))
          return make(
              {.kind = Kind::kCall, .span = file_.span(at), .args = values(at.children), .ops = {ops::full_name(*op)}});
        break;
      }
      case SyntaxKind::kCall:
        return call(at);
      default:
        break;
    }
    fail(file_.span(at), "expected a call of an operator, an operand, or a number");
  }

  template <class Children>
  std::vector<PatternRef> values(const Children& children) {
    return map_each(children, [&](const Syntax* child) { return value(*child); });
  }

  double number(const Syntax& at) {
    AttrValue value = evaluate(at, file_.origin);
    if (const int64_t* whole = value.as<int64_t>()) return static_cast<double>(*whole);
    if (const double* real = value.as<double>()) return *real;
    const Expr* scalar = value.as<Expr>();  // T.float32(0.5)
    if (const FloatImm* real = scalar ? scalar->as<FloatImm>() : nullptr) return real->value;
    if (std::optional<int64_t> whole = scalar ? as_int(*scalar) : std::nullopt) return static_cast<double>(*whole);
    fail(file_.span(at), "expected a number, found {}", to_string(value));
  }

  PatternRef call(const Syntax& at) {
    std::string name = path(*at.children[0]);
    bool is_scalar = name == "R.shape" || name == "R.prim_value";
    if (is_scalar && at.children.size() == 2) return value(*at.children[1]);
    if (name.starts_with("T.")) return make({.kind = Kind::kConstant, .number = number(at)});  // T.float32(6)
    if (name == "S.either") return make({.kind = Kind::kEither, .args = values(at.operands())});
    if (name == "S.isnt" || name == "S.constant")
      fail(file_.span(at), "{} says what an operand is: write it as the annotation of a param", name);
    if (name == "R.const" && at.children.size() > 1)
      return make({.kind = Kind::kConstant, .number = number(*at.children[1])});
    if (!name.starts_with("R.")) fail(file_.span(at), "expected an operator such as R.nn.relu, found '{}'", name);
    const std::string op = ops::full_name(name.substr(2));
    const OpRow* row = ops_.find(op);
    if (!row) fail(file_.span(at), "there is no operator '{}'{}", name, suggestion(name.substr(2)));
    PatternNode node{.kind = Kind::kCall, .span = file_.span(at), .ops = {op}};
    size_t next = 1;
    if (op == ops::kCallTir || op == ops::kCallDpsPacked || op == ops::kCallPurePacked) {
      const Syntax& callee = *at.children.at(next++);
      node.callee = callee.kind == SyntaxKind::kString ? evaluate(callee, file_.origin).as<std::string>()->c_str()
                                                       : std::string(callee.text);
      for (; next < at.children.size() && op != ops::kCallPurePacked; ++next) {
        const Syntax& tensors = *at.children[next];
        if (text::is_list(tensors)) {
          node.args = values(tensors.children);
        } else {
          node.args.push_back(value(tensors));
        }
        break;
      }
      if (op != ops::kCallPurePacked) return make(std::move(node));
    }
    for (; next < at.children.size(); ++next) {
      size_t position = next - 1;
      bool is_operand = position < row->inputs.size() ||
                        (!row->inputs.empty() && row->inputs.back().arity == OpInput::Arity::kVariadic);
      if (is_operand) {
        node.args.push_back(value(*at.children[next]));
      } else {
        size_t attr = position - row->inputs.size();
        if (attr >= row->attrs.size())
          fail(file_.span(*at.children[next]), "{} has {} arguments, this is one more", name,
               row->inputs.size() + row->attrs.size());
        node.attrs.set(row->attrs[attr].name, attribute(*at.children[next]));
      }
    }
    for (const Syntax::Keyword& keyword : at.keywords) named(keyword, *row, name, node);
    return make(std::move(node));
  }

  void named(const Syntax::Keyword& keyword, const OpRow& row, const std::string& name, PatternNode& node) {
    if (find_item(row.attrs, keyword.name, [](const OpAttr& attr) { return std::string_view(attr.name); })) {
      node.attrs.set(std::string(keyword.name), attribute(*keyword.value));
      return;
    }
    size_t position = node.args.size();
    bool is_next = position < row.inputs.size() && row.inputs[position].name == keyword.name;
    if (!is_next)
      fail(file_.span(keyword), "{} has no attribute '{}'; it has: {}", name, keyword.name,
           joined(row.attrs, &OpAttr::name));
    node.args.push_back(value(*keyword.value));
  }

  AttrValue attribute(const Syntax& at) { return evaluate(at, file_.origin); }

  std::string suggestion(const std::string& name) const {
    std::string near = nearest(name, map_each(ops_.rows(), [](const OpRow& row) { return ops::short_name(row.name); }));
    return near.empty() ? "" : fmt::format("; did you mean `R.{}`?", near);
  }

  // Reads what an operand must be: S.constant, R.Tensor(("n", 64), "float32"), S.isnt(...).
  void constrain(const Syntax& at, PatternNode& node) {
    std::string head = path(text::head_of(at));
    if (head == "S.constant") {
      node.kind = Kind::kConstant;
    } else if (head == "S.isnt" && text::is_call(at) && at.children.size() == 2) {
      PatternNode excluded;
      std::string inner = path(text::head_of(*at.children[1]));
      if (inner == "S.constant" || inner == "R.Tensor") {
        constrain(*at.children[1], excluded);
      } else {
        excluded = {.kind = Kind::kCall, .ops = {operator_named(*at.children[1], inner)}, .any_operands = true};
      }
      node.kind = Kind::kIsnt;
      node.args = {make(std::move(excluded))};
    } else if (head == "R.Tensor" || head == "Tensor") {
      tensor(at, node);
    } else if (head != "R.Object" && head != "R.Any") {
      fail(file_.span(at), "an operand is R.Tensor(shape, dtype), S.constant, or S.isnt(...), found '{}'", head);
    }
  }

  std::string operator_named(const Syntax& at, const std::string& path) {
    std::string op = path.starts_with("R.") ? ops::full_name(path.substr(2)) : "";
    if (!ops_.find(op))
      fail(file_.span(at), "expected S.constant, R.Tensor(...) or an operator such as R.nn.relu, found '{}'", path);
    return op;
  }

  void tensor(const Syntax& at, PatternNode& node) {
    if (!text::is_call(at)) return;
    auto read = [&](std::string_view name, const Syntax& value) {
      if (name == "shape" && value.kind == SyntaxKind::kString) {
        name = "dtype";  // R.Tensor("float32")
      }
      if (name == "dtype") {
        std::optional<DType> dtype = parse_dtype(*evaluate(value, file_.origin).as<std::string>());
        if (!dtype) fail(file_.span(value), "there is no dtype '{}'", value.text);
        node.dtype = dtype;
      } else if (name == "shape" && text::is_list(value)) {
        node.shape = map_each(value.children, [&](const Syntax* item) { return dim_of(*item); });
      } else if (name == "ndim") {
        std::vector<Expr> dims;
        for (int64_t i = 0; i < static_cast<int64_t>(number(value)); ++i) dims.push_back(make_dim("_"));
        node.shape = dims;
      } else {
        fail(file_.span(value), "R.Tensor takes a shape, dtype= and ndim=");
      }
    };
    constexpr std::string_view kNames[] = {"shape", "dtype"};
    for (size_t i = 1; i < at.children.size(); ++i) read(i <= 2 ? kNames[i - 1] : "", *at.children[i]);
    for (const Syntax::Keyword& keyword : at.keywords) read(keyword.name, *keyword.value);
  }

  Expr dim(const std::string& name) {
    auto [entry, is_new] = dims_.try_emplace(name, AttrValue());
    if (is_new) {
      pattern_.dims.push_back(make_dim(name));
      entry->second = Expr(pattern_.dims.back());
    }
    return *entry->second.as<Expr>();
  }

  Expr dim_of(const Syntax& at) {
    if (text::is_name(at)) return dim(std::string(at.text));
    std::string error, text = at.kind == SyntaxKind::kString ? text::unquote(at.text, error) : "";
    bool is_name = !text.empty() && std::ranges::all_of(text, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    }) && !std::isdigit(static_cast<unsigned char>(text[0]));
    if (is_name) return dim(text);
    AttrValue value = text.empty() ? evaluate(at, file_.origin, dims_) : schedule_value(text, dims_);
    if (const int64_t* number = value.as<int64_t>()) return int_imm(*number);
    if (const Expr* expr = value.as<Expr>()) return *expr;
    fail(file_.span(at), "expected a dim: a number, a name, or an expression of names above");
  }

  const ScriptFile& file_;
  const OpTable& ops_;
  Pattern pattern_;
  std::map<std::string, PatternRef, std::less<>> values_;
  ScheduleNames dims_;
};

}  // namespace

std::vector<std::string> unused_params(const Pattern& pattern) {
  std::set<const PatternNode*> used;
  std::vector<PatternRef> work = pattern.results;
  while (!work.empty()) {
    PatternRef node = work.back();
    work.pop_back();
    if (used.insert(node.get()).second) work.insert(work.end(), node->args.begin(), node->args.end());
  }
  std::vector<std::string> result;
  for (const PatternRef& param : pattern.params) {
    if (!used.contains(param.get()) && !pattern.results.back()->any_operands) result.push_back(param->name);
  }
  return result;
}

Pattern read_pattern(const Line& definition, const ScriptFile& file, const OpTable& ops) {
  return PatternReader(file, ops).run(definition);
}

Pattern pattern_of_operator(const std::string& name, const Attrs& attrs, const OpTable& ops, const Span& span) {
  const OpRow* row = ops.find(ops::full_name(name.starts_with("R.") ? name.substr(2) : name));
  if (!row) {
    std::string near =
        nearest(name, map_each(ops.rows(), [](const OpRow& known) { return ops::short_name(known.name); }));
    const size_t dot = name.rfind('.');
    const std::string type =
        dot == std::string::npos ? "domain::Type" : name.substr(0, dot) + "::" + name.substr(dot + 1);
    fail(span, "there is no operator '{}'{}; a type of ONNX nodes is written \"{}\"", name,
         near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near), type);
  }
  for (const auto& [key, value] : attrs) {
    // An input that is not a tensor is named like an attribute: min and max of clip.
    if (!find_item(row->attrs, key, [](const OpAttr& attr) { return std::string_view(attr.name); }) &&
        !find_item(row->inputs, key, [](const OpInput& input) { return std::string_view(input.name); }))
      fail(span, "{} has no attribute '{}'; it has: {}", name, key,
           row->attrs.empty() ? "none" : joined(row->attrs, &OpAttr::name));
  }
  Pattern result;
  result.results.push_back(std::make_shared<const PatternNode>(
      PatternNode{.kind = Kind::kCall, .ops = {row->name}, .attrs = attrs, .any_operands = true}));
  return result;
}

}  // namespace relaxc
