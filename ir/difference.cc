#include "ir/difference.h"
#include "ir/op_names.h"
#include "support/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace relaxc {

namespace {

// The fields that a path leaves out.
constexpr std::string_view kUnnamedFields[] = {"attrs", "annotations", "bindings", "blocks", "body",
                                               "data",  "stmts",       "value",    "var"};
// The words for other fields: alone, and before the number of an item.
struct FieldWords {
  std::string_view field, alone, item;
};
constexpr FieldWords kFieldWords[] = {
    {"a", "left operand", ""},
    {"alloc_buffers", "memory", "buffer"},
    {"args", "arguments", "argument"},
    {"b", "right operand", ""},
    {"callee", "function", ""},
    {"cast", "type of the cast", ""},
    {"else_body", "else", ""},
    {"else_branch", "else", ""},
    {"indices", "indices", "index"},
    {"items", "items", "item"},
    {"iter_vars", "axes", "axis"},
    {"match_buffers", "windows", "window"},
    {"min", "start", ""},
    {"op", "operator", ""},
    {"outputs", "outputs", "output"},
    {"params", "parameters", "parameter"},
    {"ranges", "ranges", "dim"},
    {"result", "result type", ""},
    {"shape", "shape", "dim"},
    {"then_body", "then", ""},
    {"then_branch", "then", ""},
    {"type_args", "types", "type"},
    {"values", "dims", "dim"},
};

std::string shortened(std::string text) {
  constexpr size_t kLongest = 100;
  size_t end = std::min(text.find('\n'), kLongest);
  if (end >= text.size()) return text;
  return text.substr(0, end) + (text.find('\n') == end ? "" : "...");
}

// Returns the name of an enclosing node on the path; empty when it is not mentioned.
std::string name_on_path(const NodeRef& node) {
  if (const Call* call = node.as<Call>()) {
    if (const OpRef* op = call->callee.as<OpRef>()) return ops::name_in_text(op->name);
    if (const GlobalVar* function = call->callee.as<GlobalVar>()) return fmt::format("call of '{}'", function->name);
    if (const ExternFunc* function = call->callee.as<ExternFunc>())
      return fmt::format("call of '{}'", function->symbol);
  }
  if (const Block* block = node.as<Block>()) return is_root(*block) ? "" : fmt::format("block \"{}\"", block->name);
  if (const For* loop = node.as<For>()) return fmt::format("loop {}", loop->var->name);
  if (const BufferStore* store = node.as<BufferStore>()) return fmt::format("store to {}", store->buffer->name);
  if (const BufferLoad* load = node.as<BufferLoad>()) return fmt::format("load of {}", load->buffer->name);
  if (const Bind* bind = node.as<Bind>()) return fmt::format("binding {}", bind->var->name);
  if (const AllocBuffer* alloc = node.as<AllocBuffer>()) return fmt::format("buffer {}", alloc->buffer->name);
  if (const AttrStmt* attr = node.as<AttrStmt>()) return fmt::format("attr \"{}\"", attr->key);
  if (node.is<While>()) return "while";
  if (node.is<IfThenElse>() || node.is<If>()) return "if";
  if (node.is<Assert>()) return "assert";
  return {};
}

NodeRef handle(const NodeHeader* node) { return NodeRef(RawNode{node}); }

// Returns whether both sides have the same name. Where the names differ, the path ends with the name.
bool same_name(const DifferenceStep& step) {
  return name_on_path(handle(step.left)) == name_on_path(handle(step.right));
}

std::string field_word(const DifferenceStep& step, const NodeRef* owner, bool has_item) {
  bool is_result = owner && owner->is<SeqExpr>() && step.field == "body";
  if (is_result) return "the returned value";
  bool is_value = owner && step.field == "value";
  if (is_value && owner->is<BufferStore>()) return "the stored value";
  if (is_value && owner->is<AttrStmt>()) return "value";
  if (owner && owner->is<Select>() && step.field.size() == 1)
    return step.field == "a" ? "value if true" : "value if false";
  if (std::ranges::find(kUnnamedFields, step.field) != std::end(kUnnamedFields)) return {};
  for (const FieldWords& row : kFieldWords) {
    if (step.field == row.field) return std::string(has_item ? row.item : row.alone);
  }
  std::string word(step.field);
  std::ranges::replace(word, '_', ' ');
  return word;
}

}  // namespace

std::string InWords::operator()(const NodeRef& node) const {
  if (const OpRef* op = node.as<OpRef>()) return ops::name_in_text(op->name);
  if (node.is<SeqExpr>() || node.is<If>() || node.is<Function>() || node.is<PrimFunc>() || node.is<Lambda>())
    return fmt::format("a {}", kind_name(node.kind()));
  return shortened(print(node));
}
std::string InWords::operator()(const Binding& binding) const {
  return fmt::format("binding {} = {}", binding.var->name, (*this)(binding.value));
}
std::string InWords::operator()(const BindingBlock& block) const {
  return fmt::format("{} of {} bindings", block.dataflow ? "a dataflow block" : "a block", block.bindings.size());
}
std::string InWords::operator()(const Tensor& tensor) const { return describe(tensor); }
std::string InWords::operator()(BinaryOp op) const { return info(op).symbol ? info(op).symbol : info(op).name; }

std::string both(const Tensor& left, const Tensor& right) {
  std::string a = describe(left), b = describe(right);
  if (a != b) return fmt::format("{} and {}", a, b);
  if (left.dtype().is_complex()) return both(parts_of(left), parts_of(right));
  for (int64_t i = 0; i < left.size(); ++i) {
    double x = left.as_double(i), y = right.as_double(i);
    if (std::memcmp(&x, &y, sizeof x) != 0) return fmt::format("{}, element {}: {} and {}", a, i, x, y);
  }
  return a + ", in the bits of an element";
}
std::string both(const VarRef& left, const VarRef& right) {
  auto place = [&](const VarRef& var) {
    bool alike = left->name == right->name && var.span().line > 0;
    return alike ? fmt::format("{} of line {}", var->name, var.span().line) : var->name;
  };
  std::string a = place(left), b = place(right);
  return a == b ? fmt::format("{} and another {}", a, b) : fmt::format("{} and {}", a, b);
}
std::string both(const Attrs& left, const Attrs& right, std::string_view field) {
  auto value = [](const AttrValue* v) { return v ? shortened(to_string(*v)) : std::string("nothing"); };
  auto entry = [&](const std::string& key) {
    const char* what = field == "annotations" ? "annotation" : "attribute";
    return fmt::format("{} {}: {} and {}", what, key, value(left.find(key)), value(right.find(key)));
  };
  for (const auto& [key, a] : left) {
    const AttrValue* b = right.find(key);
    if (!b || !(a == *b)) return entry(key);
  }
  for (const auto& [key, b] : right) {
    if (!left.has(key)) return entry(key);
  }
  return "attributes";
}

Difference describe_difference(const std::vector<DifferenceStep>& steps, std::string values) {
  using Kind = DifferenceStep::Kind;
  Difference result;
  std::vector<std::string> parts;
  std::optional<NodeRef> owner;
  for (size_t i = 0; i < steps.size(); ++i) {
    const DifferenceStep& step = steps[i];
    bool has_item = i + 1 < steps.size() && steps[i + 1].kind == Kind::kItem;
    std::string part;
    if (step.kind == Kind::kBinding) {
      const std::string &a = step.left_binding->var->name, &b = step.right_binding->var->name;
      part = a == b ? fmt::format("binding {}", a) : fmt::format("binding {} ({} on the right)", a, b);
      result.left = step.left_binding->var.span();
      result.right = step.right_binding->var.span();
    } else if (step.kind == Kind::kField) {
      part = field_word(step, owner ? &*owner : nullptr, has_item);
      bool is_operator = step.field == "callee" && i + 1 < steps.size() && handle(steps[i + 1].left).is<OpRef>();
      if (is_operator) part = "operator";
      if (has_item && !part.empty()) {
        const DifferenceStep& item = steps[i + 1];
        part += item.item.empty() ? fmt::format(" {}", item.index) : fmt::format(" {}", item.item);
      }
    } else if (step.kind == Kind::kNode) {
      owner = handle(step.left);
      if (same_name(step)) part = name_on_path(*owner);
      // A variable's place is its definition rather than its use.
      bool here = !owner->is<Var>() || step.defines;
      if (here && step.left->span) result.left = step.left->span;
      if (here && step.right->span && (!handle(step.right).is<Var>() || step.defines)) result.right = step.right->span;
    }
    if (!part.empty()) parts.push_back(std::move(part));
  }
  result.text = joined(parts);
  if (!values.empty()) {
    bool continues = values.starts_with("attribute ") || values.starts_with("annotation ");
    result.text += (result.text.empty() ? "" : continues ? ", " : ": ") + values;
  }
  return result;
}

}  // namespace relaxc
