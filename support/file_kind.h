// Tells what a file holds by its first bytes, for messages about a file that stands in the place of another kind.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

enum class ContentKind {
  kModel,    // ONNX
  kText,     // printable characters, such as a module
  kLibrary,  // ELF: an artifact, a library of kernels, a program
  kArray,    // .npy or .npz
  kForeign,  // what relaxc reads nowhere
};

struct FileContent {
  ContentKind kind;
  std::string_view what;     // a noun: "an HTML page, as a failed download leaves it"
  std::string_view remedy;   // where a model was expected, as text or as ONNX: "export the model with ..."
  bool is_remedied = false;  // whether the remedy leads to the file that was meant, of any kind: "download it again"
};

// Returns what the bytes are, the first thousand of which are enough; nullopt where no kind is recognized.
std::optional<FileContent> recognized_content(std::string_view bytes);

// Returns what the file holds; nullopt where that is not recognized, or the file cannot be read.
std::optional<FileContent> content_of_file(const std::string& path);

// Returns "it is an HTML page, as a failed download leaves it; download it again".
std::string to_string(const FileContent& content);

// Returns the text without the byte order mark that some editors put before UTF-8.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

// Throws a CompileError "x.npy: error: expected a vocabulary; it is an array of NumPy (.npy)" where the bytes of the
// file are not text, or are a page in place of one. `expected` is a noun.
void expect_text(const std::string& path, std::string_view bytes, std::string_view expected);

}  // namespace relaxc
