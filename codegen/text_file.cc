#include "codegen/text_file.h"

#include <algorithm>

#include "support/file_kind.h"

namespace relaxc {

// Tells a module from other texts by a decorator.
static bool holds_module(std::string_view text) {
  constexpr std::string_view kDecorators[] = {"@I.ir_module", "@R.function", "@T.prim_func"};
  return std::ranges::any_of(kDecorators, [&](std::string_view word) { return text.find(word) != text.npos; });
}

// `content` is what the bytes are, and `read` returns them all.
template <class Read>
static bool holds_text(const std::string& path, const std::optional<FileContent>& content, const Read& read) {
  if (is_text_path(path)) return !content || content->kind != ContentKind::kModel;
  return content && content->kind == ContentKind::kText && holds_module(read());
}

bool is_text_file(const std::string& path) {
  return holds_text(path, content_of_file(path), [&] { return read_text(path); });
}

bool is_text_file(const std::string& path, const CompileSettings& settings) {
  if (!settings.contents) return is_text_file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(settings.contents->data()), settings.contents->size());
  return holds_text(path, recognized_content(bytes), [&] { return bytes; });
}

}  // namespace relaxc
