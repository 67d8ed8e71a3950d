#include "support/file_kind.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/diagnostic.h"
#include "support/library_file.h"
#include "support/short_text.h"

namespace relaxc {

namespace {

// A kind of files that begin with the same bytes, behind `offset` others.
struct Signature {
  size_t offset;
  ShortText<23> bytes;
  FileContent content;
};

constexpr FileContent kPage{ContentKind::kForeign, "an HTML page, as a failed download leaves it", "download it again",
                            true};

constexpr FileContent kPacked{ContentKind::kForeign, "compressed", "unpack it first", true};

constexpr FileContent kText{ContentKind::kText, "text", "the name of a module as text ends in .py"};
constexpr FileContent kImage{ContentKind::kForeign, "an image", "give it to a model as an input"};

constexpr ShortText<23> kElf =
    "\x7f"
    "ELF";

constexpr Signature kSignatures[] = {
    {0,
     "version https://git-lfs",
     {ContentKind::kForeign, "a pointer of Git LFS in place of the file", "run `git lfs pull`", true}},
    {0,
     "\x80\x02",
     {ContentKind::kForeign, "a Python pickle, such as a PyTorch checkpoint",
      "export the model with torch.onnx.export"}},
    {0,
     "\x80\x04\x95",
     {ContentKind::kForeign, "a Python pickle", "export the model it holds, as skl2onnx does for scikit-learn"}},
    {0, "\x89HDF", {ContentKind::kForeign, "an HDF5 file, such as a Keras model", "convert it with tf2onnx"}},
    {4,
     "TFL3",
     {ContentKind::kForeign, "a TensorFlow Lite model", "convert it with `python -m tf2onnx.convert --tflite`"}},
    {0, "GGUF", {ContentKind::kForeign, "a GGUF file", "export the model that it was made from"}},
    {0, "\x1f\x8b", {ContentKind::kForeign, "compressed with gzip", "unpack it first", true}},
    {0,
     "\xfd"
     "7zXZ",
     kPacked},
    {0, "\x28\xb5\x2f\xfd", kPacked},
    {257, "ustar", {ContentKind::kForeign, "a tar archive", "unpack it first", true}},
    {0, "<!DOCTYPE", kPage},
    {0, "<!doctype", kPage},
    {0, "<html", kPage},
    {0, "\x89PNG", kImage},
    {0, "\xff\xd8\xff", kImage},
    {0, "GIF8", kImage},
    {8, "WEBP", kImage},
    {4,
     "ORTM",
     {ContentKind::kForeign, "ONNX Runtime's own form of a model (.ort)", "give the .onnx file it was made from"}},
    {0, "\x93NUMPY", {ContentKind::kArray, "an array of NumPy (.npy)", "give it to a model as an input"}},
    {0,
     kElf,
     {ContentKind::kLibrary, "a shared object, such as an artifact",
      "an artifact is compiled already: relaxc run, bench, inspect and view take it, and relaxc.load of Python"}},
};

// A zip archive begins with its first member, whose name stands behind 30 bytes.
std::optional<FileContent> content_of_archive(std::string_view bytes) {
  constexpr size_t kNameSize = 26, kName = 30;
  if (!bytes.starts_with("PK\x03\x04")) return std::nullopt;
  const size_t size = bytes.size() > kName ? static_cast<unsigned char>(bytes[kNameSize]) : 0;
  if (size > 0 && bytes.substr(kName, size).ends_with(".npy"))
    return FileContent{ContentKind::kArray, "an archive of NumPy's arrays (.npz)", "give it to a model as its inputs"};
  return FileContent{ContentKind::kForeign, "a zip archive, such as a PyTorch checkpoint",
                     "export the model with torch.onnx.export"};
}

// A ModelProto has its fields in order as all known exporters write it: the version of the IR, then one of these.
bool is_onnx(std::string_view bytes) {
  constexpr char kIrVersion = 0x08, kLargestVersion = 0x1f;
  constexpr std::string_view kNextFields = "\x12\x1a\x22\x28\x32\x3a\x42\x72";
  return bytes.size() > 2 && bytes[0] == kIrVersion && bytes[1] > 0 && bytes[1] <= kLargestVersion &&
         kNextFields.find(bytes[2]) != std::string_view::npos;
}

// The length of the header in eight bytes, of which a header of less than 4 GiB leaves four at 0, and its JSON.
bool is_safetensors(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr size_t kHeader = 8;
  return bytes.size() > kHeader && bytes.substr(4, 4) == "\0\0\0\0"sv && bytes.substr(kHeader).starts_with("{\"");
}

// Tells a dictionary or a list from a text such as a vocabulary, which may begin with "[PAD]".
bool is_json(std::string_view bytes) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t open = bytes.find_first_not_of(kSpace);
  const size_t next = open == std::string_view::npos ? open : bytes.find_first_not_of(kSpace, open + 1);
  if (next == std::string_view::npos) return false;
  const std::string_view begins = bytes[open] == '{' ? "\"}" : bytes[open] == '[' ? "{[\"]-0123456789" : "";
  return begins.find(bytes[next]) != std::string_view::npos;
}

bool is_printable(std::string_view bytes) {
  return std::ranges::all_of(bytes.substr(0, 1000), [](unsigned char c) {
    return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

}  // namespace

std::optional<FileContent> recognized_content(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  for (const Signature& row : kSignatures) {
    if (bytes.size() > row.offset && bytes.substr(row.offset).starts_with(row.bytes.view())) return row.content;
  }
  if (const auto archive = content_of_archive(bytes)) return archive;
  if (is_onnx(bytes))
    return FileContent{ContentKind::kModel, "an ONNX model", "the name of such a model ends in .onnx"};
  if (is_safetensors(bytes))
    return FileContent{ContentKind::kForeign, "a file of weights without their graph (safetensors)",
                       "export the model that they belong to with torch.onnx.export"};
  if (is_json(bytes)) return FileContent{ContentKind::kForeign, "JSON", "give the model itself"};
  const FileContent* last = is_printable(bytes) ? &kText : bytes.starts_with("BM") ? &kImage : nullptr;  // a bitmap
  return last ? std::optional(*last) : std::nullopt;
}

std::optional<FileContent> content_of_file(const std::string& path) {
  constexpr std::streamsize kHead = 1000;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;  // reading a pipe would take from it
  std::string head(kHead, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), kHead);
  head.resize(static_cast<size_t>(file.gcount()));
  return recognized_content(head);
}

bool is_library_file(const std::string& path) {
  const auto content = content_of_file(path);
  const bool is_model = content && (content->kind == ContentKind::kModel || content->kind == ContentKind::kText);
  return content && content->kind == ContentKind::kLibrary ? true : path.ends_with(".so") && !is_model;
}

std::string to_string(const FileContent& content) {
  return "it is " + std::string(content.what) + "; " + std::string(content.remedy);
}

void expect_text(const std::string& path, std::string_view bytes, std::string_view expected) {
  const auto content = recognized_content(bytes);
  if (content && content->kind == ContentKind::kText) return;
  if (content && content->is_remedied) fail(span_of_file(path), "expected {}; {}", expected, to_string(*content));
  if (content) fail(span_of_file(path), "expected {}; it is {}", expected, content->what);
  if (bytes.find('\0') != std::string_view::npos) fail(span_of_file(path), "expected {}; it is not text", expected);
}

}  // namespace relaxc
