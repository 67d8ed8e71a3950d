// Assignments of Python around a module: to names, and to parts of values.
#include <algorithm>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr size_t kMostNodes = 10'000;  // of an expression that stands for a name

size_t size_of(const Syntax& at, size_t limit = kMostNodes) {
  size_t size = 1;
  auto add = [&](const Syntax* part) {
    if (part && size <= limit) size += size_of(*part, limit - size);
  };
  for (const Syntax* child : at.children) add(child);
  for (const Syntax::Keyword& keyword : at.keywords) add(keyword.value);
  return size;
}

// Returns whether the expression is a number of a stated dtype: tvm.tir.const(2, "float32"), T.int64(4).
bool is_constant(const Syntax& at) {
  if (!is_call(at) || at.children[0]->kind != SyntaxKind::kAttribute) return false;
  std::string_view name = at.children[0]->text;
  bool by_name = at.children.size() == 1 && at.keywords.size() == 2;  // tir.IntImm(dtype="int64", value=1)
  if (by_name && is_one_of(name, {"IntImm", "FloatImm"})) return true;
  if (at.children.size() < 2) return false;
  auto is_literal = [](const Syntax* part) {
    if (part->kind == SyntaxKind::kUnary) part = part->children[0];
    return part->kind == SyntaxKind::kInt || part->kind == SyntaxKind::kFloat || part->kind == SyntaxKind::kString;
  };
  return (is_one_of(name, {"const", "IntImm", "FloatImm", "max_value", "min_value", "prim_value"}) ||
          parse_dtype(name)) &&
         at.keywords.empty() && std::ranges::all_of(at.operands(), is_literal);
}

bool draws_random(const Syntax& at) {
  bool found = false;
  for_each(&at, [&](const Syntax& each) { found = found || each.text == "random"; });
  return found;
}

// Returns whether the expression is a type: R.Tensor((n, 4), "float32").
bool is_type_of_graph(const Syntax& at) {
  const Syntax& head = head_of(at);
  return head.kind == SyntaxKind::kAttribute && is_one_of(head.text, {"Tensor", "Shape", "Object", "Prim"}) &&
         is_one_of(head.children[0]->text, {"R", "$R"});
}

}  // namespace

// Returns whether the expression makes a tensor of te: by te, by topi, or by arithmetic of other tensors.
bool Python::is_te_tensor(const Syntax& at) const {
  if (is_name(at)) return te_tensors_.contains(at.text);
  if (at.kind == SyntaxKind::kBinary || at.kind == SyntaxKind::kUnary)
    return std::ranges::any_of(at.children, [&](const Syntax* part) { return is_te_tensor(*part); });
  if (!is_call(at)) return false;
  const Syntax* root = at.children[0];
  while (root->kind == SyntaxKind::kAttribute) root = root->children[0];
  std::string path = spelling(*at.children[0]);
  return is_one_of(at.children[0]->text, {"placeholder", "compute", "scan", "extern"}) || root->text == "topi" ||
         path.starts_with("tvm.topi.");
}

// Returns whether the expression may stand wherever its name stands: it calls nothing, and names no attributes.
bool Python::is_plain(const PythonValue& value) const {
  bool plain = true;
  if (value.syntax && (is_constant(*value.syntax) || is_type_of_graph(*value.syntax))) return true;
  if (is_exporting() && value.syntax && is_array_of_numpy(*value.syntax)) return !draws_random(*value.syntax);
  if (value.text.empty()) {
    for_each(value.syntax, [&](const Syntax& at) {
      bool is_dim =
          at.kind == SyntaxKind::kAttribute && is_one_of(at.text, {"shape", "dtype"}) && is_name(*at.children[0]);
      plain = plain && !is_call(at) && (is_dim || at.kind != SyntaxKind::kAttribute) &&
              at.kind != SyntaxKind::kComprehension &&
              !(at.kind != SyntaxKind::kName && !is_call(at) && is_te_tensor(at));
    });
  }
  return plain;
}

Python::Flow Python::assign(const Line& line) {
  if (!line.value) return Flow::kNext;
  bool is_metadata = is_name(*line.target) && line.target->text == "metadata" && !scope_->parent;
  std::vector<const Syntax*> targets = {line.target}, values = {line.value};
  if (is_list(*line.target) && is_list(*line.value)) {
    targets.assign(line.target->children.begin(), line.target->children.end());
    values.assign(line.value->children.begin(), line.value->children.end());
  }
  bool is_further = line.text == "=";  // of a = b = value
  PythonValue before = assigned_;
  assigned_ = heap_.computed("the value", line, line.line);
  PythonValue value = is_further ? before : eval(*line.value);
  if (is_metadata) write(line);
  bool pairs = targets.size() == values.size() && targets.size() > 1 && value.items && writes_ &&
               std::ranges::all_of(targets, [](const Syntax* each) { return is_name(*each); }) &&
               std::ranges::all_of(value.items->values,
                                   [&](const PythonValue& each) { return each.is(Kind::kSyntax) && !is_plain(each); });
  if (pairs) value = {.kind = Kind::kSyntax, .syntax = lift(value, *line.value)};  // n, m = te.var("n"), te.var("m")
  assign_to(*line.target, value, line, line.annotation);
  if (is_name(*line.target)) {
    assigned_ = eval(*line.target);
  } else if (!value.is(Kind::kSyntax)) {
    assigned_ = value;
  }
  return Flow::kNext;
}

void Python::assign_to(const Syntax& target, const PythonValue& value, const Place& at, const Syntax* annotation) {
  bool is_syntax = value.is(Kind::kSyntax);
  if (is_name(target)) {
    if (is_syntax && !is_plain(value) && writes_) return write_assignment(target, value, at, annotation);
    PythonValue now = named(value, target.text, at);
    const Syntax* computed = nullptr;
    if (now.is(Kind::kSyntax))
      for_each(now.syntax, [&](const Syntax& part) {
        if (part.computed != 0) computed = &part;
      });
    if (computed) now = heap_.computed(target.text, at, computed->computed);
    add_aliases(now);
    return bind(target.text, now);
  }
  if (is_list(target)) {
    if (expand_shape(target, value, at)) return;
    if (const PythonValue dims = expanded(value); dims.items && is_syntax) return assign_to(target, dims, at);
    if (is_syntax && writes_) return write_assignment(target, value, at, annotation);
    auto values = iterate(value, heap_);
    auto is_star = [](const Syntax* each) { return each->kind == SyntaxKind::kStarred; };
    size_t count = target.children.size();
    bool stars = std::ranges::any_of(target.children, is_star);
    if (!values || (stars ? values->size() + 1 < count : values->size() != count)) throw PythonUnknown();
    size_t rest = values->size() + 1 - count, next = 0;
    for (const Syntax* each : target.children) {
      if (!is_star(each)) {
        assign_to(*each, (*values)[next++], at);
        continue;
      }
      auto from = values->begin() + static_cast<int64_t>(next);
      assign_to(*each->children[0], heap_.list(Kind::kList, {from, from + static_cast<int64_t>(rest)}), at);
      next += rest;
    }
    return;
  }
  if (target.kind != SyntaxKind::kSubscript) {
    if (target.kind != SyntaxKind::kAttribute || !writes_) throw PythonUnknown();
    PythonValue owner = eval(*target.children[0]);
    if (owner.is(Kind::kObject)) return set_member(owner, target.text, named(value, target.text, at));
    return write_assignment(target, value, at, annotation);
  }
  PythonValue object = eval(*target.children[0]);
  if (object.is(Kind::kSyntax)) return write_assignment(target, value, at, annotation);
  bool is_one = target.children.size() == 2 && target.children[1]->kind != SyntaxKind::kSlice;
  PythonValue index = is_one ? eval(*target.children[1]) : PythonValue();
  PythonValue item = is_one ? named(value, "item", at) : PythonValue();
  add_aliases(item);
  if (!is_one || !set_item(object, index, item, heap_)) {
    forget_value(object, at);
    throw PythonUnknown();
  }
}

// Gives values that are computed once a name: C = [te.compute(...)] is written as C_1 = te.compute(...).
PythonValue Python::named(const PythonValue& value, std::string_view hint, const Place& at) {
  if (value.items && value.items->computed == 0 && !value.is(Kind::kRange)) {
    heap_.spend(1 + value.items->values.size());
    if (depth_ > 100) throw PythonUnknown();
    Temporarily deeper(depth_, depth_ + 1);
    for (size_t i = 0; i < value.items->values.size(); ++i) {
      PythonValue now = named(value.items->values[i], hint, at);
      value.items->values[i] = now;
    }
    return value;
  }
  if (!value.is(Kind::kSyntax) || is_name(*value.syntax)) return value;
  size_t size = size_of(*value.syntax);
  heap_.spend(size);
  if (size > kMostNodes) throw PythonUnknown();
  if (is_plain(value)) return value;
  if (!writes_) {
    if (makes_tensor(*value.syntax)) throw PythonUnknown();
    return value;
  }
  std::string_view name = fresh(hint);
  write(assignment(at, name, value));
  note_library(value, name);
  note_tensor(name, *value.syntax);
  return name_value(name, at);
}

// Returns whether the expression is an array of numpy.
bool Python::is_array(const Syntax& at) const {
  if (is_array_of_numpy(at)) return true;
  if (is_name(at)) return arrays_.contains(at.text);
  if (at.kind == SyntaxKind::kUnary || at.kind == SyntaxKind::kBinary)
    return std::ranges::any_of(at.children, [&](const Syntax* part) { return is_array(*part); });
  return is_call(at) && at.children[0]->kind == SyntaxKind::kAttribute && is_array(*at.children[0]->children[0]);
}

// Returns x.shape, x.dtype, x.ndim or x.size of an array of numpy.
PythonResult Python::array_property(const Syntax& array, std::string_view name) {
  if (!is_one_of(name, {"shape", "dtype", "ndim", "size"}) || !is_array(array)) return std::nullopt;
  std::optional<relaxc::Tensor> value = types_->array_value(array);
  if (!value) return std::nullopt;
  if (name == "dtype") return heap_.string(to_string(value->dtype()));
  if (name == "ndim") return python_int(value->ndim());
  if (name == "size") return python_int(value->size());
  std::vector<PythonValue> dims;
  for (int64_t dim : value->shape()) dims.push_back(python_int(dim));
  return heap_.list(Kind::kTuple, std::move(dims));
}

// Remembers what made the value of a name.
void Python::note_library(const PythonValue& value, std::string_view name) {
  const Syntax* root = &head_of(*value.syntax);
  std::string_view made = root->text;
  while (root->kind == SyntaxKind::kAttribute || is_call(*root) || root->kind == SyntaxKind::kSubscript)
    root = root->children[0];
  if (is_te_tensor(*value.syntax)) te_tensors_.insert(name);
  if (is_array(*value.syntax)) arrays_.insert(name), types_->array(name, *value.syntax);
  note_rank(name, *value.syntax);
  if (!is_name(*root)) return;
  if (libraries_made_.contains(root->text) || is_tensor_library(root->text)) libraries_made_.insert(name);
  bool is_schedule = is_call(*value.syntax) && (made == "Schedule" || made == "create_schedule");
  if (is_schedule || schedules_.contains(root->text)) schedules_.insert(name);
}

bool Python::is_tensor_library(std::string_view root) const {
  auto library = libraries_.find(root);
  std::string_view path = library == libraries_.end() ? root : library->second;
  std::string_view first = path.substr(0, path.find('.'));
  return is_one_of(first, {"tvm", "te", "T", "topi", "relax", "rx", "R", "tir", "s_tir", "I"});
}

// Writes the assignment of syntax, whose names are then those that are written.
void Python::write_assignment(const Syntax& target, const PythonValue& value, const Place& at,
                              const Syntax* annotation) {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  std::function<const Syntax*(const Syntax&)> renamed = [&](const Syntax& part) -> const Syntax* {
    if (is_name(part)) {
      names.emplace_back(part.text, written_name(part.text));
      return name_value(names.back().second, part).syntax;
    }
    bool is_part = part.kind == SyntaxKind::kSubscript || part.kind == SyntaxKind::kAttribute;
    if (is_part) return lift(part.kind == SyntaxKind::kSubscript ? subscript(part) : eval(part), part);
    Syntax& result = heap_.node(part.kind, part, part.text);
    for (const Syntax* child : part.children) {
      result.children.push_back(renamed(*child));
      result.depth = std::max(result.depth, result.children.back()->depth + 1);
    }
    return &result;
  };
  Line& line = kept_->line();
  static_cast<Place&>(line) = heap_.place(at);
  line.kind = LineKind::kAssign;
  line.value = lift(value, at);
  line.annotation = written(annotation);
  line.target = renamed(target);
  write(line);
  for (const auto& [name, now] : names) {
    written_at_[now] = written_definitions_;
    if (value.is(Kind::kSyntax)) note_library(value, now);
    if (value.is(Kind::kSyntax) && names.size() == 1) note_tensor(now, *value.syntax);
    bind(name, name_value(now, at));
  }
}

}  // namespace relaxc::text
