// Stages that stand inside of other expressions of te: topi.nn.relu(te.compute(...)), [A, te.compute(...)].
#include <algorithm>

#include "ir/arith.h"
#include "ir/text/parse_te.h"
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

// Returns whether tensors are made in the expression: it makes a stage, chooses a tensor, or has such a part.
bool Parser::TeReader::nests_stage(const Syntax* at) {
  if (!at || at->kind == SyntaxKind::kLambda) return false;
  if (is_stage(*at)) return true;
  return std::ranges::any_of(at->children, [&](const Syntax* child) { return nests_stage(child); }) ||
         std::ranges::any_of(at->keywords, [&](const Keyword& each) { return nests_stage(each.value); });
}
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
  if (at.kind == SyntaxKind::kLambda) return at;
  auto first = [&](const Syntax* part) -> const Syntax* {
    if (!nests_stage(part)) return part;
    if (!is_stage(*part)) return &with_stages_first(*part);
    std::vector<Expr> values = values_of(*part, "");
    Syntax& name = made_name(*part, "stage");
    in.define(name.text, values.size() == 1 ? values[0] : tuple(values, in.span(*part)));
    return &name;
  };
  bool nests = std::ranges::any_of(at.children, [&](const Syntax* child) { return nests_stage(child); }) ||
               std::ranges::any_of(at.keywords, [&](const Keyword& each) { return nests_stage(each.value); });
  if (!nests) return at;
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = at.kind;
  result.text = at.text;
  result.depth = at.depth;
  for (const Syntax* child : at.children) result.children.push_back(first(child));
  for (Keyword each : at.keywords) {
    each.value = first(each.value);
    result.keywords.push_back(each);
  }
  return result;
}

}  // namespace relaxc::text
