// Which branches of Python's tests run, where the text tells.
#include "ir/text/unfold.h"

namespace relaxc::text {

const Syntax* Unfolder::known(const Syntax& at) const {
  if (!is_name(at)) return &at;
  auto found = constants_.find(at.text);
  return found == constants_.end() || changed_.contains(found->first) ? nullptr : found->second;
}

std::optional<bool> Unfolder::truth(const Syntax& at) const {
  if (at.kind == SyntaxKind::kUnary && at.text == "not") {
    std::optional<bool> value = truth(*at.children[0]);
    return value ? std::optional(!*value) : std::nullopt;
  }
  if (at.kind == SyntaxKind::kBool) {
    std::optional<bool> a = truth(*at.children[0]), b = truth(*at.children[1]);
    bool decides = at.text == "or";
    if (a == decides || b == decides) return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  auto is_literal = [](const Syntax* value) {
    return value && value->kind > SyntaxKind::kName && value->kind <= SyntaxKind::kConstant;
  };
  if (at.kind == SyntaxKind::kCompare) {
    bool is_main = is_name(*at.children[0]) && at.children[0]->text == "__name__" && at.text == "==";
    if (is_main) return at.children[1]->text == "\"__main__\"" || at.children[1]->text == "'__main__'";
    const Syntax *a = known(*at.children[0]), *b = known(*at.children[1]);
    bool same = at.text == "==" || at.text == "is", differ = at.text == "!=" || at.text == "is not";
    if (!is_literal(b) || !a || !(same || differ)) return std::nullopt;
    bool is_value = is_literal(a) || is_list(*a) || a->kind == SyntaxKind::kDict || a->kind == SyntaxKind::kLambda;
    if (!is_value) return std::nullopt;
    auto text_of = [](const Syntax& value) {
      std::string error;
      return value.kind == SyntaxKind::kString ? "'" + unquote(value.text, error) : std::string(value.text);
    };
    return (a->kind == b->kind && text_of(*a) == text_of(*b)) == same;
  }
  const Syntax* value = known(at);
  if (!is_literal(value)) return std::nullopt;
  if (value->kind == SyntaxKind::kConstant && value->text != "...") return value->text == "True";
  if (value->kind == SyntaxKind::kInt) return value->text != "0";
  return std::nullopt;
}

}  // namespace relaxc::text
