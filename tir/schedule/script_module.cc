// The steps on a schedule that a text has beside its module:
//
//   sch = tvm.tir.Schedule(Module)
//   i, j = sch.get_loops(sch.get_block("C"))
//   print(sch.mod)                                # Python, which is left out
#include <algorithm>
#include <set>

#include "tir/schedule/script_body.h"

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;

namespace {

// What the names of an expression are: of the schedule, of its results, of others.
struct Mention {
  bool schedule = false;  // a primitive is called
  bool module = false;    // sch.mod, sch.trace: what the steps gave
  bool passed = false;    // the schedule itself is given to Python
  std::set<std::string_view> others = {};
};

class Steps {
 public:
  Steps(std::shared_ptr<const Origin> origin, std::string_view module_name)
      : origin_(std::move(origin)), module_(module_name) {}

  void read(const Line& line) {
    if (line.kind == LineKind::kFunction || line.kind == LineKind::kClass || line.kind == LineKind::kImport) return;
    if (line.kind == LineKind::kBroken) return refuse_step(line);
    if (text::runs_body(line)) {
      for (const auto& [item, target] : line.items)
        if (target) bound(target, computed_);
      for (const Line* inner : line.body) read(*inner);
      return;
    }
    if (line.kind == LineKind::kAssign && line.value && makes_schedule(*line.value)) return begin(line);
    if (name_.empty()) return constant(line);
    Mention found;
    mention(line, found);
    bool is_step = found.schedule && !found.module;
    if (prints(line)) return;
    if (found.passed)
      fail(span(line), "'{}' is given to Python, which is not run; write the steps on '{}' in its place", name_, name_);
    if (!is_step) return constant(line);
    for (std::string_view other : found.others)
      if (computed_.contains(other)) fail(span(line), "'{}' is computed by Python, which is not run", other);
    lines_.push_back(&line);
    bind(line);
  }

  const Lines& lines() const { return lines_; }
  const std::string& name() const { return name_; }

 private:
  Span span(const text::Place& at) const { return {origin_, at.line, at.column, at.length}; }

  static bool makes_schedule(const Syntax& value) {
    if (value.kind != SyntaxKind::kCall || value.children.size() < 2) return false;
    const Syntax& callee = *value.children[0];
    bool is_new = callee.text == "Schedule";
    if (callee.kind != SyntaxKind::kAttribute) return callee.kind == SyntaxKind::kName && is_new;
    // tir.create_schedule is of 2020; te.create_schedule makes another kind.
    return is_new || (callee.text == "create_schedule" && callee.children[0]->text == "tir");
  }

  // Refuses a statement on the schedule of which not even the syntax is known: [sch.unroll(x) for x in loops].
  void refuse_step(const Line& line) const {
    size_t at = name_.empty() ? std::string_view::npos : line.text.find(name_ + ".");
    auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
    bool is_name = at != std::string_view::npos && (at == 0 || !is_letter(line.text[at - 1]));
    bool is_result = is_name && line.text.substr(at + name_.size()).starts_with(".mod");
    if (is_name && !is_result && !line.text.starts_with("print"))
      fail(span(line), "this statement on '{}' cannot be read, and Python is not run; write it as steps", name_);
  }

  // Returns whether the statement only shows something: print(type(sch)).
  static bool prints(const Line& line) {
    constexpr std::string_view kShow[] = {"print", "type", "display", "help", "dir", "repr", "isinstance", "Code"};
    return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kCall &&
           std::ranges::find(kShow, line.value->children[0]->text) != std::end(kShow);
  }

  // A schedule that is made again begins from the module again.
  void begin(const Line& line) {
    if (line.target->kind != SyntaxKind::kName) fail(span(line), "expected a name for the schedule");
    const Syntax& of = *line.value->children[1];
    bool is_other = !module_.empty() && of.kind == SyntaxKind::kName && of.text != module_;
    if (is_other && (name_.empty() || line.target->text == name_)) {
      name_.clear();
      lines_.clear();
    }
    if (is_other) return;
    if (!name_.empty() && line.target->text != name_)
      fail(span(line), "a text has one schedule of its module, and '{}' is another than '{}'; remove one",
           line.target->text, name_);
    name_ = std::string(line.target->text);
    std::erase_if(lines_, [](const Line* each) { return each->kind != LineKind::kAssign || calls(*each->value); });
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
      bool known = !found.schedule && !found.module &&
                   std::ranges::none_of(found.others, [&](std::string_view other) { return !values_.contains(other); });
      if (known) {
        lines_.push_back(&line);
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
    for (const Syntax* part : {line.value, line.extra}) mention(part, found);
    for (const Lines* lines : {&line.body, &line.otherwise}) {
      for (const Line* inner : *lines) mention(*inner, found);
    }
  }
  void mention(const Syntax* at, Mention& found) const {
    if (!at) return;
    bool of_schedule = at->kind == SyntaxKind::kAttribute && at->children[0]->kind == SyntaxKind::kName &&
                       at->children[0]->text == name_;
    if (of_schedule) {
      bool is_result = at->text == "mod" || at->text == "trace" || at->text == "show" || at->text == "func";
      (is_result ? found.module : found.schedule) = true;
      return;
    }
    if (at->kind == SyntaxKind::kName) at->text == name_ ? found.passed = true : (found.others.insert(at->text), true);
    for (const Syntax* child : at->children) mention(child, found);
    for (const Syntax::Keyword& keyword : at->keywords) mention(keyword.value, found);
  }

  std::shared_ptr<const Origin> origin_;
  std::string_view module_;
  std::string name_;
  Lines lines_;
  std::set<std::string_view> values_, computed_;
};

}  // namespace

std::optional<ScheduleRule> read_module_schedule(std::string_view text, const std::string& filename,
                                                 const std::string& module_name) {
  if (text.find("Schedule(") == std::string_view::npos && text.find("create_schedule(") == std::string_view::npos)
    return std::nullopt;
  std::shared_ptr<const Origin> origin = origin_of(text, filename);
  Diagnostics ignored;  // Python that is not run need not be readable
  text::SyntaxReader reader({origin, *origin->text}, ignored);
  Steps steps(origin, module_name);
  Lines all;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees;
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
  if (steps.name().empty()) return std::nullopt;
  const text::Lines& lines = steps.lines();
  Span span = lines.empty() ? Span{origin} : Span{origin, lines[0]->line, lines[0]->column, lines[0]->length};
  ScheduleRule rule{.name = steps.name(), .span = span};
  Diagnostics in_intrins;
  std::shared_ptr<const TensorIntrins> intrins = read_intrins(origin, all, filename, in_intrins);
  in_intrins.throw_if_errors();
  rule.apply = ScheduleBody{origin, std::move(intrins), lines, steps.name(), std::move(trees)};
  return rule;
}

}  // namespace relaxc
