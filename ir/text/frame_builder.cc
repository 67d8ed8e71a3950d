// Reads what tvm.script.ir_builder builds, by writing its frames as the function that they are:
//
//   with IRBuilder() as ib:
//       with T.prim_func():                          # @T.prim_func
//           T.func_name("main")                      # def main(a: T.Buffer((8,), "float32")):
//           a = T.arg("a", T.Buffer((8,), "float32"))
//           with T.serial(8) as i:                   #     for i in T.serial(8):
//               T.buffer_store(a, a[i] * 2.0, [i])   #         a[i] = a[i] * 2.0
#include <algorithm>

#include "ir/text/block_builder.h"
#include "ir/text/python_value.h"

namespace relaxc::text {

// Returns the functions in `with IRBuilder() as ib:`; none for other statements.
Lines Parser::BuilderReader::frames(const Line& line) {
  auto opens = [&](const Line& each, std::string_view name) {
    return each.kind == LineKind::kWith && each.items.size() == 1 && is_call(*each.items[0].first) &&
           each.items[0].first->children[0]->text == name;
  };
  Lines result;
  if (!opens(line, "IRBuilder")) return result;
  for (const Line* inner : line.body) {
    if (opens(*inner, "prim_func") || opens(*inner, "function")) result.push_back(&framed_function(*inner));
    if (!opens(*inner, "ir_module")) continue;
    for (const Line* each : inner->body) {
      if (opens(*each, "prim_func") || opens(*each, "function")) result.push_back(&framed_function(*each));
    }
  }
  return result;
}

// Writes `with T.prim_func():` or `with R.function():` as a definition.
const Line& Parser::BuilderReader::framed_function(const Line& frame) {
  const Syntax& call = *frame.items[0].first;
  Line& result = in.tree_->line();
  static_cast<Place&>(result) = frame;
  result.kind = LineKind::kFunction;
  result.text = "main";
  Syntax& decorator = made(SyntaxKind::kCall, call);
  decorator.children.push_back(call.children[0]);
  for (const Syntax::Keyword& keyword : call.keywords) {
    std::string_view name = keyword.name.starts_with("is_") ? keyword.name.substr(3) : keyword.name;
    decorator.keywords.push_back({keyword, name, keyword.value});
  }
  result.decorators.push_back(&decorator);
  result.body = framed(frame.body, result);
  return result;
}

// Returns the statements below a frame; what they say of the function goes to its head.
Lines Parser::BuilderReader::framed(const Lines& lines, Line& function) {
  Lines result;
  for (const Line* line : lines) {
    Line& copy = in.tree_->line();
    copy = *line;
    const Syntax* call = line->value && is_call(*line->value) ? line->value : nullptr;
    std::string_view form = call ? call->children[0]->text : std::string_view();
    if (form.ends_with('_')) form.remove_suffix(1);  // R.func_name_("main"), as from 2026 on
    if (form == "func_name") {
      function.text = *in.made_texts_.insert(in.string(in.required(*call, 0, "name"))).first;
      continue;
    }
    bool is_silent = form == "func_ret_struct_info" || form == "func_ret_type" || form == "func_ret" ||
                     (form == "name" && line->kind == LineKind::kExpression);
    if (is_silent) continue;
    if (form == "arg" && line->kind == LineKind::kAssign && is_name(*line->target)) {
      const Syntax& type = in.required(*call, 1, "obj");
      function.params.push_back({*line->target, line->target->text, &type, nullptr, {}});
      continue;
    }
    if (form == "func_ret_value") {
      copy.kind = LineKind::kReturn;
      copy.value = &in.required(*call, 0, "value");
    } else if (form == "emit") {
      copy.value = &in.required(*call, 0, "value");
    } else if (form == "name" && in.positional(*call) == 2) {  // x = IRBuilder.name("x", value)
      copy.value = call->children[2];
    }
    const Syntax* item = line->kind == LineKind::kWith ? line->items[0].first : nullptr;
    std::string_view frame = item && is_call(*item) ? item->children[0]->text : std::string_view();
    bool is_loop =
        is_one_of(frame, {"serial", "parallel", "vectorized", "unroll", "unrolled", "thread_binding", "grid"});
    if (is_loop && line->items.size() == 1 && line->items[0].second) {
      copy.kind = LineKind::kFor;
      copy.value = item;
      copy.target = line->items[0].second;
      copy.items.clear();
    }
    copy.body = framed(line->body, function);
    result.push_back(&copy);
  }
  return result;
}

}  // namespace relaxc::text
