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
#include "ir/text/python_lines.h"
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
  Replacements given;  // names of Python by those of the params: x_1 = R.arg("x", ...)
  for (Param& param : result.params) {
    auto named = arguments_.find(param.name);
    bool is_used = named == arguments_.end() || named->second == param.name;
    for (const Line* line : result.body)
      for_each(*line, [&](const Syntax& at) { is_used = is_used || (is_name(at) && at.text == named->second); });
    if (is_used) continue;
    Syntax& own = made(SyntaxKind::kName, param);
    own.text = *in.made_texts_.insert(named->second).first;
    given.emplace(param.name, &own);
    param.name = own.text;
  }
  arguments_.clear();
  if (given.empty()) return result;
  for (const Line*& line : result.body) line = &with_names(*line, given, *in.tree_);
  return result;
}

// Reads R.emit(value), R.emit_match_cast(value, type) and R.emit_var_binding(relax.VarBinding(v, value)).
void Parser::BuilderReader::emitted_binding(std::string_view form_name, const Syntax& call, Line& result, Lines& out) {
  if (result.kind == LineKind::kExpression) {  // a binding that nothing uses
    result.kind = LineKind::kAssign;
    Syntax& unused = made(SyntaxKind::kName, call);
    unused.text = "_";
    result.target = &unused;
  }
  if (form_name == "emit") {
    result.value = replaced(&in.required(call, 0, "value"));
  } else if (form_name == "emit_match_cast") {
    Syntax& cast = made(SyntaxKind::kCall, call);
    cast.children = {&form("match_cast", call), replaced(&in.required(call, 0, "value")),
                     replaced(&in.required(call, 1, "struct_info"))};
    result.value = &cast;
  } else {
    const Syntax* binding = replaced(&in.required(call, 0, "binding"));
    const Syntax* target = result.target;
    bind_node(*binding, result);
    if (is_name(*result.target) && result.target->text == target->text) return;
    Line& own = in.tree_->line();
    own = result;
    out.push_back(&own);
    result.value = own.target;
    result.target = target;
  }
}

// Remembers the outputs of `with R.dataflow() as frame:`, which frame.output_vars[0] names.
void Parser::BuilderReader::note_outputs(Line& block) {
  const Syntax& frame = *std::exchange(block.items[0].second, nullptr);
  std::vector<const Syntax*>& outputs = outputs_[std::string(frame.text)];
  outputs.clear();
  for (const Line* line : block.body) {
    const bool is_output = line->value && is_call(*line->value) && line->value->children[0]->text == "output";
    if (is_output) outputs.assign(line->value->operands().begin(), line->value->operands().end());
  }
}

const Syntax* Parser::BuilderReader::output_of(const Syntax& at) {
  const Syntax* list = at.kind == SyntaxKind::kSubscript ? at.children[0] : nullptr;
  const bool is_item = list && list->kind == SyntaxKind::kAttribute && list->text == "output_vars" &&
                       is_name(*list->children[0]) && outputs_.contains(list->children[0]->text);
  if (!is_item) return replaced(&at);
  const std::vector<const Syntax*>& outputs = outputs_.find(list->children[0]->text)->second;
  const int64_t position = in.constant_int(*at.children[1]);
  if (position < 0 || position >= std::ssize(outputs)) in.fail(at, "the block has {} outputs", outputs.size());
  return outputs[static_cast<size_t>(position)];
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
      arguments_.insert_or_assign(std::string(line->target->text), in.string(in.required(*call, 0, "name")));
      continue;
    }
    const bool of_graph = !function.decorators.empty() && head_of(*function.decorators[0]).text == "function";
    if (of_graph && line->kind == LineKind::kAssign && (in.type_variables(*line) || defines(*line))) continue;
    if (form == "func_ret_value") {
      copy.kind = LineKind::kReturn;
      copy.value = output_of(in.required(*call, 0, "value"));
    } else if (form == "emit" || form == "emit_match_cast" || form == "emit_var_binding") {
      emitted_binding(form, *call, copy, result);
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
    if (frame == "dataflow" && copy.items[0].second) note_outputs(copy);
    result.push_back(&copy);
  }
  return result;
}

}  // namespace relaxc::text
