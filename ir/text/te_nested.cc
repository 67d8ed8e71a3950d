// Stages that stand inside of other expressions of te: topi.nn.relu(te.compute(...)), [A, te.compute(...)].
#include <algorithm>

#include "ir/arith.h"
#include "ir/text/parse_te.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_value.h"

namespace relaxc::text {

// Returns whether the expression makes tensors of its own: by te, by topi, or by a function of Python that does.
bool Parser::TeReader::makes_stage(const Syntax& at) const {
  if (!is_call(at)) return false;
  return is_one_of(callee(at), {"T.compute", "T.placeholder", "T.scan", "T.extern"}) || called_function(at) ||
         calls_topi(at);
}

// Returns whether te's own forms occur in the expression, outside of the values of elements.
bool Parser::TeReader::has_stages(const Syntax& at) const {
  if (at.kind == SyntaxKind::kLambda) return false;
  if (makes_stage(at) && !calls_topi(at)) return true;
  return std::ranges::any_of(at.children, [&](const Syntax* child) { return child && has_stages(*child); }) ||
         std::ranges::any_of(at.keywords, [&](const Keyword& each) { return has_stages(*each.value); });
}

// Returns whether the part of an element's value makes a tensor that is the same for all elements: topi.sum(A)[i].
bool Parser::TeReader::is_stage_of_all(const Syntax& at, const std::set<std::string_view>& params) const {
  if (!calls_topi(at) && !is_one_of(callee(at), {"T.compute", "T.placeholder"})) return false;
  bool found = false;
  for_each(&at, [&](const Syntax& part) { found = found || (is_name(part) && params.contains(part.text)); });
  return !found;
}

// Makes the tensors inside of the value of an element that are the same for all, and returns it with their names.
const Syntax& Parser::TeReader::element_with_stages_first(const Syntax& at, const std::set<std::string_view>& params) {
  std::set<std::string_view> inner = params;
  for (size_t i = 0; at.kind == SyntaxKind::kLambda && i + 1 < at.children.size(); ++i)
    add_names(at.children[i], inner);
  auto first = [&](const Syntax* part) -> const Syntax* {
    if (!part) return part;
    return is_stage_of_all(*part, inner) ? &stage_name(*part) : &element_with_stages_first(*part, inner);
  };
  return with_parts(at, first);
}

// Makes the stage, and returns a name for it.
const Syntax& Parser::TeReader::stage_name(const Syntax& at) {
  std::vector<Expr> values = values_of(at, "");
  Syntax& name = made_name(at, "stage");
  in.define(name.text, values.size() == 1 ? values[0] : tuple(values, in.span(at)));
  return name;
}

// Returns the expression with other parts; itself where all stay.
const Syntax& Parser::TeReader::with_parts(const Syntax& at, const std::function<const Syntax*(const Syntax*)>& part) {
  std::vector<const Syntax*> children;
  std::vector<Keyword> keywords(at.keywords.begin(), at.keywords.end());
  bool changed = false;
  for (const Syntax* child : at.children) {
    children.push_back(part(child));
    changed = changed || children.back() != child;
  }
  for (Keyword& each : keywords) {
    const Syntax* now = part(each.value);
    changed = changed || now != each.value;
    each.value = now;
  }
  if (!changed) return at;
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = at.kind;
  result.text = at.text;
  result.depth = at.depth;
  result.children.assign(children.begin(), children.end());
  result.keywords.assign(keywords.begin(), keywords.end());
  return result;
}

// Returns whether the expression makes a tensor, or chooses one.
bool Parser::TeReader::is_stage(const Syntax& at) {
  return makes_stage(at) || (at.kind == SyntaxKind::kConditional && is_of_tensors(at));
}

// Returns the branch of `a if condition else b` that Python would take, where these are tensors.
const Syntax& Parser::TeReader::chosen(const Syntax& at) {
  if (at.kind != SyntaxKind::kConditional || !is_of_tensors(at)) return at;
  std::optional<int64_t> known = as_int(in.condition(*at.children[1]));
  if (!known)
    in.fail({*at.children[1], {}, "T.if_then_else(condition, a, b) chooses for each element"},
            "the choice of a tensor is known only when the program runs");
  return chosen(*at.children[*known != 0 ? 0 : 2]);
}

// Makes the stages inside of the expression, the inner ones first, and returns it with names in their places.
const Syntax& Parser::TeReader::with_stages_first(const Syntax& at) {
  if (at.kind == SyntaxKind::kLambda) return element_with_stages_first(at, {});
  auto first = [&](const Syntax* part) -> const Syntax* {
    if (!part) return part;
    return is_stage(*part) ? &stage_name(*part) : &with_stages_first(*part);
  };
  return with_parts(at, first);
}

}  // namespace relaxc::text
