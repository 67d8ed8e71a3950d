// Reads the kernels of a file: tensor programs and declarations of C functions, and what each implements.
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/names.h"
#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "passes/kernel_rules.h"
#include "passes/program_warnings.h"
#include "passes/read_pattern.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tir/analysis/races.h"
#include "tir/analysis/reductions.h"
#include "tir/lower/lower.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;

namespace {

// Returns the text with nothing but the lines from `first` to before `last`, at their lines.
std::string only_lines(std::string_view text, uint32_t first, uint32_t last) {
  std::string result;
  size_t at = 0;
  for (uint32_t number = 1; at < text.size() && number < last; ++number) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (number >= first) result += text.substr(at, end - at);
    result += '\n';
    at = end + 1;
  }
  return result;
}

// Puts `with` in place of a whole line.
void replace_line(std::string& text, uint32_t line, std::string_view with) {
  size_t at = 0;
  for (uint32_t number = 1; number < line; ++number) at = text.find('\n', at) + 1;
  size_t begin = text.find_first_not_of(' ', at);
  text.replace(begin, std::min(text.find('\n', begin), text.size()) - begin, with);
}

class KernelReader {
 public:
  KernelReader(std::string_view text, const std::string& filename, const OpTable& ops)
      : ops_(ops), filename_(filename), file_(read_script_file(text, filename, diagnostics_)) {
    for (const Line* line : file_.lines) starts_.push_back(first_line(*line));
    for (const auto& [head, members] : file_.classes) starts_.push_back(first_line(*head));
    starts_.push_back(UINT32_MAX);
    std::ranges::sort(starts_);
  }

  std::vector<KernelRule> run() {
    // A pattern stands before the kernels for it.
    for (const Line* line : file_.lines) guarded([&] { definition(*line); });
    for (const auto& [head, members] : file_.classes) {
      if (find_decorator(*head, "rewriter", "R")) guarded([&] { rewriter(*head, members); });
    }
    guarded([&] { set_shapes(); });
    for (const KernelRule& rule : rules_) guarded([&] { check_defaults(rule); });
    find_unused();
    // Patterns that have no kernel are composed for a schedule.
    for (auto& [name, rule] : patterns_) {
      if (!used_.contains(name)) rules_.push_back(std::move(rule));
    }
    std::ranges::stable_sort(rules_, {}, [](const KernelRule& rule) { return rule.span.line; });
    for (KernelRule& rule : rules_) {
      if (rule.pattern) rule.pass = std::make_shared<const Pass>(pass_of_rules(rule.name));
    }
    diagnostics_.throw_if_errors();
    return std::move(rules_);
  }
  // Of tensor programs that implement nothing, and that no call among the file's statements names.
  std::vector<std::string> notes;
  std::vector<PrimFuncRef> programs;  // of kernels

 private:
  void guarded(const std::function<void()>& read) {
    try {
      read();
    } catch (const CompileError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics_.add(diagnostic);
    }
  }

  void definition(const Line& line) {
    if (line.kind != LineKind::kFunction) return;
    check_decorators(line);
    if (!is_of_kernels(line)) return;
    if (text::identifier(line.text) != line.text)  // as the verifier expects (ir/verify/verify.cc)
      fail(file_.span(line), "'{}' is not a name of a kernel or pattern: expected a to z, A to Z, digits and '_'",
           line.text);
    if (find_decorator(line, "shape", "S")) {
      shapes_.push_back(&line);
    } else if (const Syntax* decorator = find_decorator(line, "pattern", "S")) {
      KernelRule rule{.name = std::string(line.text), .span = file_.span(line)};
      broken_.insert(rule.name);
      rule.pattern = read_pattern(line, file_, ops_);
      broken_.erase(rule.name);
      pattern_arguments(*decorator, "S.pattern", rule);
      if (!patterns_.emplace(rule.name, std::move(rule)).second)
        fail(file_.span(line), "pattern '{}' is defined twice", line.text);
    } else {
      kernel(line);
    }
  }

  void check_decorators(const Line& line) {
    constexpr std::string_view kKnown[] = {"implements", "pattern", "extern", "shape", "schedule", "rule"};
    for (const Syntax* decorator : line.decorators) {
      const Syntax& head = text::head_of(*decorator);
      bool is_ours = head.kind == SyntaxKind::kAttribute && head.children[0]->text == "S";
      if (!is_ours || std::ranges::count(kKnown, head.text)) continue;
      std::string near = nearest(head.text, {std::begin(kKnown), std::end(kKnown)});
      fail(file_.span(*decorator), "'{}' has a decorator that a kernel does not have: {}{}", line.text, head.text,
           near.empty() ? "" : fmt::format("; did you mean S.{}?", near));
    }
  }

  // Reads what stands in the decorator of a pattern or rewriter, if anything does.
  void pattern_arguments(const Syntax& decorator, std::string_view name, KernelRule& rule) {
    if (!text::is_call(decorator)) return;
    if (decorator.children.size() > 1)
      fail(file_.span(*decorator.children[1]), "{} takes where=lambda ...: ... and node=\"name\" alone", name);
    for (const Syntax::Keyword& keyword : decorator.keywords) {
      if (keyword.name == "where") {
        rule.where = condition(*keyword.value);
      } else if (keyword.name == "node") {
        rule.node = text_of(*keyword.value);
      } else {
        fail(file_.span(keyword), "{} takes where= and node=, not '{}'; attributes stand in its operators", name,
             keyword.name);
      }
    }
  }

  std::string text_of(const Syntax& at) {
    AttrValue value = evaluate(at, file_.origin);
    if (!value.as<std::string>()) fail(file_.span(at), "expected a text in quotes, found {}", to_string(value));
    return *value.as<std::string>();
  }

  // A file with graph functions is a module, whose programs they call.
  void find_unused() {
    auto is_graph = [](const Line* line) { return find_decorator(*line, "function", "R") != nullptr; };
    if (std::ranges::any_of(file_.lines, is_graph)) return;
    for (const Line* line : file_.lines) {
      if (line->kind != LineKind::kFunction || is_of_kernels(*line) || !find_decorator(*line, "prim_func")) continue;
      bool is_named = std::ranges::any_of(file_.lines, [&](const Line* other) {
        return other->kind == LineKind::kExpression && text::is_call(*other->value) &&
               std::ranges::any_of(other->value->children, [&](const Syntax* at) { return at->text == line->text; });
      });
      if (!is_named)
        notes.push_back(note_at(file_.span(*line),
                                fmt::format("'{}' is used nowhere: it implements nothing; add @S.implements(...) "
                                            "(docs/own-kernels.md)",
                                            line->text)));
    }
  }

  // Reads a tensor program, or the signature of a C function.
  PrimFuncRef program(const Line& line) {
    uint32_t first = first_line(line);
    std::string only = only_lines(*file_.origin->text, first, *std::ranges::upper_bound(starts_, first));
    bool is_declared = find_decorator(line, "prim_func") == nullptr;
    for (size_t i = 0; i < line.decorators.size(); ++i) {
      const Syntax& decorator = *line.decorators[i];
      if (text::head_of(decorator).children[0]->text != "S") continue;
      uint32_t end = i + 1 < line.decorators.size() ? line.decorators[i + 1]->line : line.line;
      for (uint32_t number = decorator.line; number < end; ++number)
        replace_line(only, number, std::exchange(is_declared, false) ? "@T.prim_func" : "");
    }
    Diagnostics problems;
    IRModule module = parse_module(only, filename_, ops_, problems);
    if (!problems.has_errors()) verify_ranges(module, Ranges::kAxes, problems);
    problems.throw_if_errors();
    if (module.functions.size() != 1 || !module.functions.begin()->second.is<PrimFunc>())
      fail(file_.span(line), "expected one tensor program");
    PrimFunc result = *module.functions.begin()->second.as<PrimFunc>();
    result.attrs = result.attrs.without(attr_names::kGlobalSymbol);
    PrimFuncRef made = make_prim_func(std::move(result), file_.span(line));
    if (std::vector<VarRef> open = free_vars(made); !open.empty())
      fail(file_.span(line),
           "'{0}' uses '{1}', and no buffer has it as a dim by itself, so that its value is not known; name the dim "
           "\"{1}\" and what depends on it by expressions of it",
           line.text, open[0]->name);
    programs.push_back(promote_indices(made));
    return programs.back();  // its dims are int64, as the graph's are
  }

  UserKernel program_or_function(const Line& line, const std::string& name) {
    UserKernel kernel{.name = name, .program = program(line)};
    if (const Syntax* declared = find_decorator(line, "extern", "S")) {
      if (find_decorator(line, "prim_func"))
        fail(file_.span(line), "a C function has no tensor program: leave out one of @S.extern and @T.prim_func");
      const size_t arguments = text::is_call(*declared) ? declared->children.size() - 1 : 0;
      if (arguments > 1)
        fail(file_.span(*declared->children[2]), "S.extern takes one name, the symbol of a C function, found {}",
             arguments);
      kernel.symbol = arguments == 1 ? text_of(*declared->children[1]) : std::string(line.text);
      if (text::is_call(*declared)) kernel.results = results_of(*declared, kernel);
    } else if (!find_decorator(line, "prim_func")) {
      fail(file_.span(line), "'{}' needs @T.prim_func, or @S.extern(\"symbol\") for a C function", line.text);
    }
    return kernel;
  }

  // Reads @S.extern("symbol", results=2).
  size_t results_of(const Syntax& declared, const UserKernel& kernel) {
    size_t results = 0, buffers = buffer_params(kernel.program).size();
    for (const Syntax::Keyword& keyword : declared.keywords) {
      if (keyword.name != "results")
        fail(file_.span(keyword), "S.extern takes the symbol of a C function and results=, found {}=", keyword.name);
      AttrValue value = evaluate(*keyword.value, file_.origin);
      const int64_t* number = value.as<int64_t>();
      if (!number || *number < 1 || *number > static_cast<int64_t>(buffers))
        fail(file_.span(keyword), "results= is how many of the {} buffers are results, the last ones, found {}",
             buffers, to_string(value));
      results = static_cast<size_t>(*number);
    }
    return results;
  }

  void kernel(const Line& line) {
    UserKernel kernel = program_or_function(line, std::string(line.text));
    if (!names_.insert(kernel.name).second) fail(file_.span(line), "kernel '{}' is defined twice", kernel.name);
    for (const Syntax* decorator : line.decorators) {
      if (text::head_of(*decorator).text == "implements") implements(*decorator, kernel);
    }
    if (!find_decorator(line, "implements", "S"))
      fail(file_.span(line), "'{}' implements nothing; add @S.implements(...)", line.text);
  }

  void implements(const Syntax& at, UserKernel kernel) {
    KernelRule rule{.name = kernel.name, .span = file_.span(at)};
    Attrs attrs;
    for (const Syntax::Keyword& keyword : at.keywords) {
      if (keyword.name == "where") {
        kernel.where = condition(*keyword.value);
      } else if (keyword.name == "node") {
        rule.node = text_of(*keyword.value);
      } else if (keyword.name == "defaults") {
        AttrValue value = evaluate(*keyword.value, file_.origin);
        if (!value.as<Attrs>()) fail(file_.span(keyword), "defaults is a dictionary, found {}", to_string(value));
        kernel.defaults = *value.as<Attrs>();
      } else if (keyword.name == "layout") {
        layout(*keyword.value, kernel);
      } else if (keyword.name == "absent") {
        rule.absent = positions(*keyword.value);
      } else {
        constexpr std::string_view kKnown[] = {"where", "node", "defaults", "layout", "absent"};
        // No attribute of an operator is a function or a dictionary.
        std::string near = nearest(keyword.name, {std::begin(kKnown), std::end(kKnown)});
        if (keyword.value->kind == SyntaxKind::kLambda || keyword.value->kind == SyntaxKind::kDict)
          fail(file_.span(keyword), "S.implements has no '{}'{}", keyword.name,
               near.empty() ? "; it takes attributes of the operator, and " + joined(kKnown)
                            : fmt::format("; did you mean {}=?", near));
        attrs.set(std::string(keyword.name), evaluate(*keyword.value, file_.origin));
      }
    }
    if (!text::is_call(at) || at.children.size() > 2)
      fail(file_.span(at),
           "S.implements takes an operator (\"nn.softmax\"), a type of nodes (\"com.me::Gelu\"), a pattern, or "
           "node=\"name\"");
    set_target(at, std::move(attrs), kernel, rule);
    rule.kernel = std::move(kernel);
    rules_.push_back(std::move(rule));
  }

  // Reads absent=[1], the positions of inputs.
  std::set<int64_t> positions(const Syntax& at) {
    AttrValue value = evaluate(at, file_.origin);
    std::vector<int64_t> list;
    if (!from_attr(value, list) || list.empty() || *std::ranges::min_element(list) < 0)
      fail(file_.span(at),
           "absent= lists the positions of inputs that the node leaves out, from 0: absent=[1], found {}",
           to_string(value));
    return {list.begin(), list.end()};
  }

  // Sets what the kernel implements.
  void set_target(const Syntax& at, Attrs attrs, const UserKernel& kernel, KernelRule& rule) {
    const Syntax* what = at.children.size() == 2 ? at.children[1] : nullptr;
    if (!what) {
      if (rule.node.empty())
        fail(file_.span(at), "S.implements needs an operator, a type of nodes, a pattern, or node=\"name\"");
      rule.attrs = std::move(attrs);
      return;
    }
    bool is_of_nodes = what->kind == SyntaxKind::kString && what->text.find("::") != std::string_view::npos;
    if (!rule.absent.empty() && !is_of_nodes)
      fail(file_.span(at), "absent= is for nodes of the model, S.implements(\"domain::Type\") or node=\"name\"");
    if (text::is_name(*what)) {
      auto found = patterns_.find(what->text);
      if (found == patterns_.end() && broken_.contains(std::string(what->text)))
        throw CompileError({});  // told already
      if (found == patterns_.end())
        fail(file_.span(*what), "there is no pattern '{}' above; define it with @S.pattern", what->text);
      if (!attrs.empty())
        fail(file_.span(at), "attribute '{}' stands in the pattern's operators, not here", attrs.begin()->first);
      used_.insert(found->first);
      rule.pattern = found->second.pattern;
      rule.pattern_name = found->first;
      rule.where = found->second.where;
      if (rule.node.empty()) rule.node = found->second.node;
      size_t buffers = buffer_params(kernel.program).size(), operands = rule.pattern->params.size(),
             results = rule.pattern->results.size();
      if (buffers != operands + results)
        fail(file_.span(at), "'{}' has {} buffers ({}), and pattern '{}' has {} operands ({}) and {} results",
             kernel.name, buffers,
             joined(buffer_params(kernel.program), [](const Buffer& param) { return param->name; }), what->text,
             operands, joined(rule.pattern->params, [](const PatternRef& param) { return param->name; }), results);
      return;
    }
    std::string name = text_of(*what);
    if (name.find("::") != std::string::npos) {
      rule.node_type = name;
      rule.attrs = std::move(attrs);
      return;
    }
    if (patterns_.contains(name) && !ops_.find(ops::full_name(name)))
      fail(file_.span(*what),
           "there is no operator '{0}', but a pattern: its name stands without quotes, S.implements({0})", name);
    rule.pattern = pattern_of_operator(name, attrs, ops_, file_.span(at));
  }

  void layout(const Syntax& at, UserKernel& kernel) {
    AttrValue value = evaluate(at, file_.origin);
    const Attrs* maps = value.as<Attrs>();
    if (!maps) fail(file_.span(at), "layout is a dictionary from params to lambdas, found {}", to_string(value));
    std::vector<std::string> names =
        map_each(buffer_params(kernel.program), [](const Buffer& param) { return param->name; });
    for (const auto& [name, map] : *maps) {
      if (!std::ranges::count(names, name))
        fail(file_.span(at), "'{}' has no buffer '{}'; it has: {}", kernel.name, name, joined(names));
      if (!map.as<Expr>() || !map.as<Expr>()->is<Lambda>())
        fail(file_.span(at), "the layout of '{}' is a lambda from the operand's axes to the kernel's", name);
      kernel.layout.emplace(name, *map.as<Expr>());
    }
  }

  // Reads where=lambda n, m: m % 16 == 0, whose params name dims and attributes.
  DimCondition condition(const Syntax& at) {
    if (at.kind != SyntaxKind::kLambda)
      fail(file_.span(at), "where is a lambda of dims and attributes: where=lambda n, m: m % 16 == 0");
    DimCondition result;
    for (const Syntax* param : std::span(at.children).first(at.children.size() - 1))
      result.reads.emplace_back(param->text);
    result.failure = [file = file_, body = at.children.back(),
                      &at](const DimValues& values) -> std::optional<std::string> {
      DimValues names;
      for (const Syntax* param : std::span(at.children).first(at.children.size() - 1)) {
        auto value = values.find(param->text);
        if (value == values.end())
          fail(file.span(*param), "'{}' is neither a dim of the signature nor an attribute; there are: {}; {}",
               param->text, joined(values, [](const auto& entry) { return entry.first; }),
               remedy_of_absent(param->text));
        names.insert(*value);
      }
      std::string text = "where= ";
      try {
        AttrValue result = evaluate(*body, file.origin, names);
        if (const bool* holds = result.as<bool>())
          return *holds ? std::nullopt : std::optional("its condition (where=) does not hold" + described(names));
        text = "its condition (where=) is not known to hold" + described(names);
        if (!result.as<Expr>())
          text = fmt::format("its condition (where=) gives {}, and not True or False,{}", to_string(result),
                             described(names));
      } catch (const CompileError& error) {
        text = fmt::format("its condition (where=) cannot be decided{}: {}", described(names),
                           error.diagnostics().front().message);
      }
      return text;
    };
    return result;
  }
  static std::string described(const DimValues& names) {
    return names.empty() ? "" : " for " + joined(names, [](const auto& entry) {
                                  const Expr* dim = entry.second.template as<Expr>();
                                  return fmt::format("{} = {}", entry.first,
                                                     dim ? text_of_dim(*dim) : to_string(entry.second));
                                });
  }

  // Attaches @S.shape("kernel") programs.
  void set_shapes() {
    for (const Line* line : shapes_) {
      const Syntax& at = *find_decorator(*line, "shape", "S");
      if (!text::is_call(at) || at.children.size() != 2) fail(file_.span(at), "expected @S.shape(\"kernel\")");
      std::string name = text::is_name(*at.children[1]) ? std::string(at.children[1]->text) : text_of(*at.children[1]);
      UserKernel shape = program_or_function(*line, name + "_shape");
      bool found = false;
      for (KernelRule& rule : rules_) {
        if (!rule.kernel || rule.kernel->name != name) continue;
        shape.defaults = rule.kernel->defaults;
        rule.kernel->shape = std::make_shared<const UserKernel>(shape);
        found = true;
      }
      std::string near = nearest(name, map_each(rules_, &KernelRule::name));
      if (!found)
        fail(file_.span(at), "there is no kernel '{}'{}", name,
             near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
    }
  }

  // A default that nothing reads is a name that is wrong.
  void check_defaults(const KernelRule& rule) const {
    for (const auto& [name, value] : rule.kernel ? rule.kernel->defaults : Attrs()) {
      const UserKernel& kernel = *rule.kernel;
      if (reads_attribute(kernel, name) || (kernel.shape && reads_attribute(*kernel.shape, name)) ||
          rule.attrs.has(name))
        continue;
      std::vector<std::string> known = kernel.where.reads;
      for (const VarRef& param : kernel.program->params) {
        if (param.type().is<PrimType>()) known.push_back(param->name);
      }
      const std::string near = nearest(name, known);
      fail(rule.span, "defaults has '{}', which '{}' does not read{}", name, kernel.name,
           near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
    }
  }

  // Reads a class of TVM's form: @R.rewriter with the functions `pattern` and `replacement`.
  void rewriter(const Line& head, const Lines& members) {
    auto member = [&](std::string_view name) -> const Line& {
      const Line* const* found = find_item(members, name, [](const Line* line) { return line->text; });
      if (!found) fail(file_.span(head), "rewriter '{}' has no function '{}'", head.text, name);
      return **found;
    };
    const Line &pattern = member("pattern"), &replacement = member("replacement");
    KernelRule rule{.name = std::string(head.text), .span = file_.span(head)};
    rule.pattern = read_pattern(pattern, file_, ops_);
    const Syntax& decorator = *find_decorator(head, "rewriter", "R");
    pattern_arguments(decorator, "R.rewriter", rule);
    uint32_t first = first_line(head);
    std::string only = only_lines(*file_.origin->text, first, *std::ranges::upper_bound(starts_, first));
    uint32_t last_line = head.line;
    for (const Syntax* other : head.decorators) {
      if (other->line > decorator.line) last_line = std::min(last_line, other->line);
    }
    for (uint32_t line = decorator.line; line < last_line; ++line) blank_line(only, line);
    only.insert(start_of_line(only, decorator.line), "@I.ir_module");
    uint32_t end = UINT32_MAX;
    for (const Line* other : members) {
      if (uint32_t line = first_line(*other); line > first_line(pattern)) end = std::min(end, line);
    }
    uint32_t last = std::min<uint32_t>(end, static_cast<uint32_t>(std::ranges::count(only, '\n')) + 1);
    for (uint32_t line = first_line(pattern); line < last; ++line) blank_line(only, line);
    for (const auto& param : replacement.params | std::views::reverse) {
      // Nothing is said of its type.
      if (!param.annotation) insert_in_line(only, param.line, param.column + param.length, ": R.Tensor");
    }
    Diagnostics problems;
    rule.functions = parse_module(only, filename_, ops_, problems);
    point_to_outsiders(problems, head);
    check_replacement(rule.functions, file_.span(replacement), problems);
    for (auto& [name, function] : rule.functions.functions) function = without_symbol(function);
    rule.replacement = rule.functions.graph_function("replacement");
    rule.functions.functions.erase("replacement");
    if ((*rule.replacement)->params.size() != rule.pattern->params.size())
      fail(file_.span(replacement), "the replacement has {} params, and the pattern {}",
           (*rule.replacement)->params.size(), rule.pattern->params.size());
    rules_.push_back(std::move(rule));
  }
  // Throws the errors. A replacement that misses a function of the file is told where to put it.
  void point_to_outsiders(const Diagnostics& problems, const Line& head) const {
    Diagnostics result;
    for (Diagnostic problem : problems.all()) {
      for (const Line* line : file_.lines) {
        if (line->kind != LineKind::kFunction || !problem.message.ends_with(fmt::format("name '{}'", line->text)))
          continue;
        problem.notes = {
            fmt::format("a rewriter calls the functions of its class alone: move '{0}' into class {1} and "
                        "call it cls.{0}, where cls = {1}",
                        line->text, head.text)};
      }
      result.add(std::move(problem));
    }
    result.throw_if_errors();
  }
  void check_replacement(const IRModule& module, const Span& span, Diagnostics& problems) const {
    for_each_binding(module.graph_function("replacement")->body, [&](const Binding& binding) {
      const Call* call = binding.value.as<Call>();
      const GlobalVar* callee = call ? call->callee.as<GlobalVar>() : nullptr;
      if (callee && callee->name == "replacement") fail(span, "the replacement of a rewriter calls itself");
      if (call && !is_pure(*call, ops_))
        fail(binding.value.span(),
             "the replacement of a rewriter must not have side effects; R.call_pure_packed "
             "promises that a function has none");
    });
    verify(module, ops_, problems);
    if (!problems.has_errors()) verify_ranges(module, Ranges::kAxes, problems);
    problems.throw_if_errors();
  }
  static Expr without_symbol(const Expr& function) {
    auto stripped = [&](auto ref) -> Expr {
      auto copy = *ref;
      copy.attrs = copy.attrs.without(attr_names::kGlobalSymbol);
      return make(std::move(copy), function.type(), function.span());
    };
    if (auto graph = try_cast<Function>(function)) return stripped(*graph);
    auto program = try_cast<PrimFunc>(function);
    return program ? stripped(*program) : function;
  }
  static size_t start_of_line(const std::string& text, uint32_t line) {
    size_t at = 0;
    for (uint32_t number = 1; number < line && at != std::string::npos; ++number) at = text.find('\n', at) + 1;
    return at;
  }
  static void insert_in_line(std::string& text, uint32_t line, uint32_t column, std::string_view what) {
    text.insert(std::min(start_of_line(text, line) + column - 1, text.size()), what);
  }
  static void blank_line(std::string& text, uint32_t line) {
    size_t at = start_of_line(text, line);
    text.erase(at, std::min(text.find('\n', at), text.size()) - at);
  }

  const OpTable& ops_;
  const std::string& filename_;
  Diagnostics diagnostics_;
  ScriptFile file_;
  std::vector<uint32_t> starts_;  // the first lines of all definitions
  std::map<std::string, KernelRule, std::less<>> patterns_;
  std::set<std::string> used_, names_;
  std::set<std::string> broken_;  // patterns that cannot be read
  std::vector<const Line*> shapes_;
  std::vector<KernelRule> rules_;
};

}  // namespace

IRModule programs_of_rules(const std::vector<KernelRule>& rules) {
  IRModule result;
  for (const KernelRule& rule : rules) {
    const bool is_program = rule.kernel && rule.kernel->symbol.empty();
    if (is_program) result.functions.insert_or_assign(rule.kernel->name, rule.kernel->program);
    for (const auto& [name, function] : rule.functions.functions) {
      if (function.is<PrimFunc>()) result.functions.insert_or_assign(name, function);
    }
  }
  return result;
}

std::vector<KernelRule> read_kernel_rules(std::string_view text, const std::string& filename, const OpTable& ops,
                                          std::vector<std::string>* notes, Diagnostics* warnings) {
  KernelReader reader(text, filename, ops);
  std::vector<KernelRule> rules = reader.run();
  Diagnostics problems;
  for (size_t i = 0; i < reader.programs.size(); ++i)
    verify({{{fmt::format("kernel_{}", i), without_symbol(reader.programs[i])}}, {}, {}}, ops, problems);
  problems.throw_if_errors();
  Diagnostics other_warnings;
  for (const PrimFuncRef& program : reader.programs) {
    for (const Diagnostic& found : wrong_reductions(program, Results::kParams))
      (found.severity == Severity::kError ? problems : other_warnings).add(found);
  }
  problems.throw_if_errors();
  if (warnings) {
    for (const Diagnostic& warning : other_warnings.all()) warnings->add(warning);
    for (const Diagnostic& warning : kernel_warnings(rules)) warnings->add(warning);
    for (const Diagnostic& warning : unread_annotations(reader.programs)) warnings->add(warning);
    for (const KernelRule& rule : rules) {
      for (const std::string& param : rule.pattern ? unused_params(*rule.pattern) : std::vector<std::string>())
        warnings->warning(rule.span, "param '{}' of the pattern is not used, so that '{}' matches nothing", param,
                          rule.name);
    }
    for (const PrimFuncRef& program : reader.programs) {
      for (const Diagnostic& warning : racing_loops(program)) warnings->add(warning);
    }
  }
  if (notes) std::ranges::move(reader.notes, std::back_inserter(*notes));
  return rules;
}

void check_names(const std::vector<KernelRule>& rules) {
  std::map<std::string_view, const KernelRule*> known;
  for (const KernelRule& rule : rules) {
    const KernelRule& first = *known.try_emplace(rule.name, &rule).first->second;
    if (rule.span && first.span && first.span.origin->file != rule.span.origin->file)
      fail(rule.span, "'{}' is defined in {}, too; give one of the two another name", rule.name, to_string(first.span));
  }
}

std::vector<NodeKernel> node_kernels(const std::vector<KernelRule>& rules) {
  std::vector<NodeKernel> result;
  for (const KernelRule& rule : rules) {
    if (rule.pattern || !rule.kernel) continue;
    result.push_back({rule.node_type, rule.node, rule.attrs, *rule.kernel, rule.absent, rule.span});
  }
  return result;
}

}  // namespace relaxc
