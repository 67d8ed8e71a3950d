#include "codegen/text_file.h"

#include <algorithm>

#include "support/file_kind.h"

namespace relaxc {

// Tells a module from other texts by a decorator.
static bool holds_module(std::string_view text) {
  constexpr std::string_view kDecorators[] = {"@I.ir_module", "@R.function", "@T.prim_func"};
  return std::ranges::any_of(kDecorators, [&](std::string_view word) { return text.find(word) != text.npos; });
}

bool is_text_file(const std::string& path) {
  const auto content = content_of_file(path);
  if (is_text_path(path)) return !content || content->kind != ContentKind::kModel;
  return content && content->kind == ContentKind::kText && holds_module(read_text(path));
}

bool is_text_file(const std::string& path, const CompileSettings& settings) {
  if (!settings.contents) return is_text_file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(settings.contents->data()), settings.contents->size());
  const auto content = recognized_content(bytes);
  if (is_text_path(path)) return !content || content->kind != ContentKind::kModel;
  return content && content->kind == ContentKind::kText && holds_module(bytes);
}

}  // namespace relaxc
