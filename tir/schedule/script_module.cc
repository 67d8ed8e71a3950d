// The steps on a schedule that a text has beside its module:
//
//   sch = tvm.tir.Schedule(Module)
//   i, j = sch.get_loops(sch.get_block("C"))
//   print(sch.mod)                                # Python, which is left out
#include <algorithm>
#include <map>
#include <set>

#include "ir/text/python_run.h"
#include "tir/primitives/table.h"
#include "tir/schedule/script_body.h"

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;

namespace {

// What the names of an expression are: of a schedule, of its results, of others.
struct Mention {
  std::set<std::string_view> schedules = {};  // of which a primitive is called
  std::set<std::string_view> results = {};    // sch.mod, sch.trace: what the steps gave
  std::set<std::string_view> passed = {};     // given to Python
  std::set<std::string_view> others = {};
  const Syntax* computed = nullptr;  // a name that only Python knows
  bool asks = false;                 // a method is called that is not a primitive
};

// The steps on each schedule of the text. One of them is for the module: the last that is built, or else the last.
class ModuleSteps {
 public:
  ModuleSteps(std::shared_ptr<const Origin> origin, std::string_view module_name)
      : origin_(std::move(origin)), module_(module_name) {}

  void read(const Line& line) {
    if (text::is_script_function(line)) functions_.emplace(line.text);
    for (const text::NamedFunction& each : text::named_functions(line)) names_.emplace(each.function, each.name);
    if (line.kind == LineKind::kFunction || line.kind == LineKind::kClass || line.kind == LineKind::kImport) return;
    if (line.kind == LineKind::kBroken) return refuse_step(line);
    if (text::runs_body(line)) {
      for (const auto& [item, target] : line.items)
        if (target) bound(target, computed_);
      for (const Line* inner : line.body) read(*inner);
      return;
    }
    bool assigns = line.kind == LineKind::kAssign && line.value;
    if (assigns && makes_schedule(*line.value)) return begin(line);
    if (assigns && line.target->kind == SyntaxKind::kName && line.value->kind == SyntaxKind::kName)
      aliases_.insert_or_assign(line.target->text, line.value->text);
    if (schedules_.empty()) return constant(line);
    Mention found;
    mention(line, found);
    if (std::string_view built = result_of(line, found); !built.empty()) take(line, built);
    if (found.schedules.empty() && found.results.empty() && found.passed.empty() && continues(line)) {
      for (std::string_view other : found.others) {  // _, j, _ = loops
        if (auto made = made_by_.find(other); made != made_by_.end()) found.schedules.insert(made->second);
      }
    }
    bool is_step = !found.schedules.empty() && found.results.empty();
    if (shows(line, found)) return;
    if (!found.passed.empty()) {
      std::string_view name = *found.passed.begin();
      fail(span(line), "'{}' is given to Python, which is not run; write the steps on '{}' in its place", name, name);
    }
    if (!is_step) {
      std::set<std::string_view> names;
      bound_below(line, names);
      for (std::string_view name : names) made_by_.erase(name);
      return constant(line);
    }
    if (found.computed)
      fail(span(*found.computed), "'{}' is computed by Python in line {}, which is not run", found.computed->text,
           found.computed->computed);
    for (std::string_view other : found.others)
      if (computed_.contains(other)) fail(span(line), "'{}' is computed by Python, which is not run", other);
    for (std::string_view name : found.schedules) schedules_[std::string(name)].push_back(&line);
    bind(line);
    std::set<std::string_view> names;
    bound_below(line, names);
    for (std::string_view name : names) made_by_.insert_or_assign(name, *found.schedules.begin());
  }

  // The schedule that counts: its name, and its steps. Where functions stand side by side, each has its schedule.
  std::optional<std::pair<std::string, Lines>> result() {
    auto last = schedules_.find(last_);
    if (!built_ && last == schedules_.end()) return std::nullopt;
    std::pair<std::string, Lines> chosen = built_ ? *built_ : std::pair(last->first, last->second);
    auto own = of_function_.find(chosen.first);
    if (functions_.size() < 2 || own == of_function_.end()) return chosen;
    for (const auto& [name, function] : of_function_) {
      if (name != chosen.first && schedules_.contains(name))
        earlier_.insert_or_assign(function, std::pair(name, schedules_[name]));
    }
    earlier_.erase(own->second);
    Lines all;
    for (const auto& [function, of] : earlier_) {
      all.push_back(&work_on(chosen.first, function, of.second));
      const text::Replacements renamed = {{of.first, all.back()->value->children[0]->children[0]}};
      for (const Line* step : of.second) all.push_back(&with_names(*step, renamed, *tree_));
    }
    all.push_back(&work_on(chosen.first, own->second, chosen.second));
    all.insert(all.end(), chosen.second.begin(), chosen.second.end());
    chosen.second = std::move(all);
    return chosen;
  }
  const std::shared_ptr<text::SyntaxTree>& tree() const { return tree_; }

 private:
  // Returns whether a statement that names what steps made is one of the schedule's, too.
  static bool continues(const Line& line) {
    constexpr LineKind kKinds[] = {LineKind::kAssign, LineKind::kAugmented, LineKind::kFor, LineKind::kIf};
    return std::ranges::find(kKinds, line.kind) != std::end(kKinds);
  }

  // Makes sch.work_on("f").
  const Line& work_on(const std::string& schedule, const std::string& function, const Lines& before) {
    Line& line = tree_->line();
    if (!before.empty()) static_cast<text::Place&>(line) = *before[0];
    auto made = [&](SyntaxKind kind, std::string_view text) -> Syntax& {
      Syntax& result = tree_->node();
      static_cast<text::Place&>(result) = line;
      result.kind = kind;
      result.text = tree_->text(text);
      return result;
    };
    Syntax &call = made(SyntaxKind::kCall, ""), &method = made(SyntaxKind::kAttribute, "work_on");
    method.children.push_back(&made(SyntaxKind::kName, schedule));
    call.children.push_back(&method);
    auto renamed = names_.find(function);  // {"mm": matmul} of tvm.IRModule
    const std::string& name = renamed == names_.end() ? function : renamed->second;
    call.children.push_back(&made(SyntaxKind::kString, '"' + name + '"'));
    call.depth = 3;
    line.kind = LineKind::kExpression;
    line.value = &call;
    return line;
  }

  Span span(const text::Place& at) const { return {origin_, at.line, at.column, at.length}; }

  static bool makes_schedule(const Syntax& value) {
    if (value.kind != SyntaxKind::kCall || (value.children.size() < 2 && value.keywords.empty())) return false;
    const Syntax& callee = *value.children[0];
    bool is_new = callee.text == "Schedule";
    if (callee.kind != SyntaxKind::kAttribute) return callee.kind == SyntaxKind::kName && is_new;
    // tir.create_schedule is of 2020; te.create_schedule makes another kind.
    return is_new || (callee.text == "create_schedule" && callee.children[0]->text == "tir");
  }

  // Refuses a statement on the schedule of which not even the syntax is known: [sch.unroll(x) for x in loops].
  void refuse_step(const Line& line) const {
    for (const auto& [name, steps] : schedules_) refuse_step(line, name);
  }
  void refuse_step(const Line& line, const std::string& name) const {
    size_t at = line.text.find(name + ".");
    auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
    bool is_name = at != std::string_view::npos && (at == 0 || !is_letter(line.text[at - 1]));
    bool is_result = is_name && line.text.substr(at + name.size()).starts_with(".mod");
    if (is_name && !is_result && !line.text.starts_with("print"))
      fail(span(line), "this statement on '{}' cannot be read, and Python is not run; write it as steps", name);
  }

  // Returns whether the statement only shows something: print(type(sch)), or asserts what is not a primitive's result.
  static bool shows(const Line& line, const Mention& found) {
    if (line.kind == LineKind::kAssert && (found.asks || found.schedules.empty())) return true;
    constexpr std::string_view kShow[] = {"print", "type", "display", "help", "dir", "repr", "isinstance", "Code"};
    if (!line.value || line.value->kind != SyntaxKind::kCall) return false;
    std::string_view called = line.value->children[0]->text;
    if (called.find("feature") != std::string_view::npos) return true;  // ms.feature.per_block_feature(sch)
    if (line.kind != LineKind::kExpression) return false;
    // Helpers of courses and of TVM's tests: write_sch(sch, "log"), save_code(sch), verify_trace_roundtrip(sch, mod).
    constexpr std::string_view kHelpers[] = {"assert_", "check_", "dump_",   "log_",  "print_",
                                             "save_",   "show_",  "verify_", "write_"};
    return std::ranges::find(kShow, called) != std::end(kShow) ||
           std::ranges::any_of(kHelpers, [&](std::string_view prefix) { return called.starts_with(prefix); });
  }

  // A schedule that is made of the module begins anew. One of what another gave goes on from there.
  void begin(const Line& line) {
    if (line.target->kind != SyntaxKind::kName) fail(span(line), "expected a name for the schedule");
    const Syntax& of = line.value->children.size() > 1 ? *line.value->children[1] : *line.value->keywords[0].value;
    std::string name(line.target->text);
    Mention found;
    mention(&of, found);
    std::optional<std::pair<std::string, Lines>> before;
    if (!found.results.empty()) {
      std::string earlier(*found.results.begin());
      before.emplace(earlier, schedules_[earlier]);
    } else if (auto known = given_.find(std::string(root_of(of).text)); known != given_.end()) {
      before = known->second;
    }
    if (!before) {
      std::string_view module = root_of(of).text;
      for (auto known = aliases_.find(module); known != aliases_.end() && module != known->second;
           known = aliases_.find(module))
        module = known->second;
      bool is_other = !module_.empty() && root_of(of).kind == SyntaxKind::kName && module != module_;
      if (is_other) {
        schedules_.erase(name);
        others_.insert(name);
        return;
      }
      before.emplace(name, constants_);
    }
    others_.erase(name);
    last_ = name;
    if (auto known = of_function_.find(name); known != of_function_.end() && schedules_.contains(name))
      earlier_.insert_or_assign(known->second, std::pair(name, schedules_[name]));
    of_function_.erase(name);
    if (of.kind == SyntaxKind::kName && functions_.contains(std::string(of.text)))
      of_function_.insert_or_assign(name, std::string(of.text));
    if (before->first == name) {
      schedules_.insert_or_assign(name, before->second);
      return;
    }
    const text::Replacements renamed = {{before->first, line.target}};
    for (const Line*& step : before->second) step = &with_names(*step, renamed, *tree_);
    schedules_.insert_or_assign(name, std::move(before->second));
  }
  // Returns the object of an expression: f of f["main"].
  static const Syntax& root_of(const Syntax& at) {
    return at.kind == SyntaxKind::kSubscript ? root_of(*at.children[0]) : at;
  }

  // Returns the schedule whose module the statement keeps or builds: func = sch.mod, tvm.build(sch.mod).
  std::string_view result_of(const Line& line, const Mention& found) const {
    if (line.kind != LineKind::kAssign && line.kind != LineKind::kExpression) return {};
    if (found.results.size() == 1) return *found.results.begin();
    for (std::string_view other : found.others) {
      if (auto known = given_.find(std::string(other)); known != given_.end()) return known->first;
    }
    return {};
  }
  void take(const Line& line, std::string_view of) {
    auto known = given_.find(std::string(of));
    std::string name(of);
    std::pair<std::string, Lines> state = schedules_.contains(name) ? std::pair(name, schedules_[name]) : known->second;
    const Syntax& value = *line.value;
    bool builds =
        value.kind == SyntaxKind::kCall && (value.children[0]->text == "build" || value.children[0]->text == "compile");
    if (builds) built_ = state;
    bool keeps = !builds && line.kind == LineKind::kAssign && line.target->kind == SyntaxKind::kName &&
                 root_of(value).kind != SyntaxKind::kCall;
    if (keeps) given_.insert_or_assign(std::string(line.target->text), std::move(state));
  }

  static bool calls(const Syntax& at) {
    return at.kind == SyntaxKind::kCall ||
           std::ranges::any_of(at.children, [](const Syntax* child) { return child && calls(*child); });
  }

  // Keeps x = 4 and factors = [None, x], which steps may name.
  void constant(const Line& line) {
    if (line.kind == LineKind::kAssign && line.value && !calls(*line.value)) {
      Mention found;
      mention(line.value, found);
      bool known = !found.computed && found.schedules.empty() && found.results.empty() && found.passed.empty() &&
                   std::ranges::none_of(found.others, [&](std::string_view other) { return !values_.contains(other); });
      if (known) {
        constants_.push_back(&line);
        for (auto& [name, lines] : schedules_) lines.push_back(&line);
        std::set<std::string_view> names;
        bound(line.target, names);
        values_.insert(names.begin(), names.end());
        for (std::string_view each : names) computed_.erase(each);
        return;
      }
    }
    bound_below(line, computed_);
    for (std::string_view name : text::changed_names(line)) computed_.insert(name);
  }

  static void bound_below(const Line& line, std::set<std::string_view>& names) {
    if (line.target) bound(line.target, names);
    for (const Lines* lines : {&line.body, &line.otherwise}) {
      for (const Line* inner : *lines) bound_below(*inner, names);
    }
  }

  static void bound(const Syntax* target, std::set<std::string_view>& names) {
    if (target->kind == SyntaxKind::kName) names.insert(target->text);
    if (target->kind == SyntaxKind::kTuple || target->kind == SyntaxKind::kList ||
        target->kind == SyntaxKind::kStarred) {
      for (const Syntax* item : target->children) bound(item, names);
    }
  }
  void bind(const Line& line) {
    if (line.kind != LineKind::kAssign) return;
    std::set<std::string_view> names;
    bound(line.target, names);
    for (std::string_view each : names) computed_.erase(each);
  }

  void mention(const Line& line, Mention& found) const {
    const bool raises = line.kind == LineKind::kRaise,
               asserts = line.kind == LineKind::kAssert;  // their texts do not count
    mention(raises ? nullptr : line.value, found);
    mention(raises || asserts ? nullptr : line.extra, found);
    for (const Lines* lines : {&line.body, &line.otherwise}) {
      for (const Line* inner : *lines) mention(*inner, found);
    }
  }
  void mention(const Syntax* at, Mention& found) const {
    if (!at) return;
    bool is_member = at->kind == SyntaxKind::kAttribute && at->children[0]->kind == SyntaxKind::kName;
    auto known = is_member ? schedules_.find(std::string(at->children[0]->text)) : schedules_.end();
    if (known != schedules_.end()) {
      bool is_result = at->text == "mod" || at->text == "trace" || at->text == "show" || at->text == "func";
      (is_result ? found.results : found.schedules).insert(known->first);
      bool is_step = scheduling::find_primitive(at->text) || at->text == "get" || at->text == "work_on";
      found.asks = found.asks || (!is_result && !is_step);
      return;
    }
    if (at->kind == SyntaxKind::kLambda) {  // its params are names of its own
      Mention inner;
      mention(at->children.back(), inner);
      std::set<std::string_view> own;
      for (size_t i = 0; i + 1 < at->children.size(); ++i) bound(at->children[i], own);
      for (std::string_view name : own) inner.others.erase(name);
      found.schedules.merge(inner.schedules);
      found.results.merge(inner.results);
      found.passed.merge(inner.passed);
      found.others.merge(inner.others);
      if (inner.computed) found.computed = inner.computed;
      found.asks = found.asks || inner.asks;
      return;
    }
    if (at->computed != 0) found.computed = at;
    if (at->kind == SyntaxKind::kName)
      (schedules_.contains(std::string(at->text)) ? found.passed : found.others).insert(at->text);
    for (const Syntax* child : at->children) mention(child, found);
    for (const Syntax::Keyword& keyword : at->keywords) mention(keyword.value, found);
  }

  std::shared_ptr<const Origin> origin_;
  std::string_view module_;
  std::map<std::string, Lines> schedules_;
  std::map<std::string, std::pair<std::string, Lines>> given_;  // by name, the module that a schedule gave
  std::optional<std::pair<std::string, Lines>> built_;
  std::set<std::string> functions_;                               // programs beside each other
  std::map<std::string, std::string, std::less<>> names_;         // by function: the name that a module gives it
  std::map<std::string, std::string> of_function_;                // by schedule
  std::map<std::string, std::pair<std::string, Lines>> earlier_;  // by function: the schedule that it had before
  std::string last_;
  Lines constants_;
  std::map<std::string_view, std::string_view> aliases_;
  std::set<std::string, std::less<>> others_;  // schedules of other modules
  std::set<std::string_view> values_, computed_;
  std::map<std::string_view, std::string_view> made_by_;  // by name of a step's result: its schedule
  std::shared_ptr<text::SyntaxTree> tree_ = std::make_shared<text::SyntaxTree>();
};

}  // namespace

std::optional<ScheduleRule> read_module_schedule(std::string_view text, const std::string& filename,
                                                 const std::string& module_name) {
  if (text.find("Schedule(") == std::string_view::npos && text.find("create_schedule(") == std::string_view::npos)
    return std::nullopt;
  std::shared_ptr<const Origin> origin = origin_of(text, filename);
  Diagnostics ignored;  // Python that is not run need not be readable
  text::Python reader({origin, *origin->text}, ignored);
  ModuleSteps steps(origin, module_name);
  Lines all;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees = {steps.tree(), reader.kept()};
  size_t before = 0;
  for (Lines lines; reader.next(*trees.emplace_back(std::make_shared<text::SyntaxTree>()), lines); lines.clear()) {
    bool readable = ignored.all().size() == before;
    before = ignored.all().size();
    if (reader.in_class()) continue;
    for (const Line* line : lines) {
      if (readable || line->kind == LineKind::kBroken) steps.read(*line);
    }
    all.insert(all.end(), lines.begin(), lines.end());
  }
  auto chosen = steps.result();
  if (!chosen) return std::nullopt;
  const auto& [name, lines] = *chosen;
  Span span = lines.empty() ? Span{origin} : Span{origin, lines[0]->line, lines[0]->column, lines[0]->length};
  ScheduleRule rule{.name = name, .span = span};
  Diagnostics in_intrins;
  std::shared_ptr<const TensorIntrins> intrins = read_intrins(origin, all, filename, in_intrins);
  in_intrins.throw_if_errors();
  rule.apply = ScheduleBody{origin, std::move(intrins), lines, name, std::move(trees)};
  return rule;
}

}  // namespace relaxc
