#include "tir/primitives/primitive.h"

#include <algorithm>

#include "ir/visit.h"
#include "support/joined.h"
#include "support/nearest.h"

namespace relaxc::scheduling {

std::string_view to_string(ResultKind kind) {
  constexpr std::string_view kNames[] = {"nothing", "a block", "a loop", "a number", "blocks", "loops", "numbers"};
  return kNames[static_cast<size_t>(kind)];
}

const Primitive* find_primitive(std::string_view name) {
  if (name == "get_sblock") name = "get_block";
  if (name == "get_axes") name = "get_loops";
  auto row = std::ranges::find(primitives(), name, &Primitive::name);
  return row == primitives().end() ? nullptr : &*row;
}

std::string unknown_primitive(std::string_view name) {
  if (name == "show")
    return "a schedule is not shown while it runs; relaxc compile --emit=loops prints the loops after it";
  std::string near = nearest(name, map_each(primitives(), [](const Primitive& row) { return std::string(row.name); }));
  return fmt::format("there is no primitive '{}'; ", name) +
         (near.empty() ? "relaxc opt --list-primitives shows them" : fmt::format("did you mean '{}'?", near));
}

namespace {

void check_word(const Primitive& primitive, const ArgumentKind& kind, const AttrValue& value) {
  const std::string* word = value.as<std::string>();
  if (!word || kind.words.empty()) return;
  std::string_view head(*word);
  if (kind.goes_on_after_dot) head = head.substr(0, head.find('.'));
  if (std::ranges::find(kind.words, head) == kind.words.end())
    fail({}, "{}: there is no {} '{}'; there are: {}", primitive.name, kind.name, *word, joined(kind.words));
}

void check_numbers(const AttrValue& argument, Step& step) {
  constexpr int64_t kLargestInMap = int64_t{1} << 40;
  auto check = [&](int64_t number, int64_t most) {
    if (number > most || number < -most - 1) step.refuse({}, "{} is too large a number", number);
  };
  if (const int64_t* number = argument.as<int64_t>()) check(*number, kLargestNumber);
  if (const AttrList* list = argument.as<AttrList>()) {
    for (const AttrValue& item : *list) check_numbers(item, step);
  }
  const Expr* e = argument.as<Expr>();
  if (!e) return;
  walk(*e, [&](const IntImm& node) { check(node.value, kLargestInMap); });
  walk(*e, [&](const Ref<Binary>& node) {
    if (node->op != BinaryOp::kFloorDiv && node->op != BinaryOp::kFloorMod) return;
    auto divisor = as_int(step.number(node->b));
    if (divisor && *divisor < 1) step.refuse({}, "the map divides by {}, expected a positive number", *divisor);
  });
}

}  // namespace

void check_arguments(const Primitive& primitive, const AttrList& arguments, Step& step) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentKind& kind = primitive.params[i].kind;
    check_word(primitive, kind, arguments[i]);
    if (!kind.is_any_value) check_numbers(arguments[i], step);
  }
}

std::string describe_primitives() {
  std::string out;
  for (const Primitive& row : primitives()) {
    auto text_of = [](const Param& param) {
      std::string otherwise = param.otherwise ? "=" + relaxc::to_string(*param.otherwise) : "";
      return fmt::format("{}{}{}", param.kind.is_variadic ? "*" : "", param.name, otherwise);
    };
    out += fmt::format("{}({}) -> {}\n    {}\n", row.name, joined(row.params, text_of), to_string(row.result), row.doc);
    for (const Param& param : row.params)
      out += fmt::format("    {:<27} {}: {}\n", param.name, param.kind.name, param.doc);
  }
  return out;
}

}  // namespace relaxc::scheduling
