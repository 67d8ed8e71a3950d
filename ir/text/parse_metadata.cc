// Reads constants in TVM's metadata section: metadata = tvm.ir.load_json("""{...}"""), a graph of nodes that refer to
// each other by number, and its tensors in base64. The expression parser reads the JSON, which is Python except for
// three names.
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "ir/text/parsing.h"
#include "ir/text/safetensors.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

// Returns the text of a string, which has no escapes; empty for other syntax.
std::string_view plain_string(const Syntax* at) {
  bool is_string = at && at->kind == SyntaxKind::kString && at->text.size() >= 2;
  return is_string ? at->text.substr(1, at->text.size() - 2) : std::string_view();
}

const Syntax* entry(const Syntax* dict, std::string_view key) {
  if (!dict || dict->kind != SyntaxKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict->children.size(); i += 2) {
    if (plain_string(dict->children[i]) == key) return dict->children[i + 1];
  }
  return nullptr;
}

// Returns item i of a list; null when there is none.
const Syntax* list_item(const Syntax* list, int64_t i) {
  bool found = list && list->kind == SyntaxKind::kList && i >= 0 && i < std::ssize(list->children);
  return found ? list->children[static_cast<size_t>(i)] : nullptr;
}
// Reads a number, which older versions write as a string; -1 for other syntax.
int64_t number_of(const Syntax* at) {
  if (!at) return -1;
  std::string_view digits = at->kind == SyntaxKind::kInt ? at->text : plain_string(at);
  int64_t value = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The metadata's graph: a list of nodes that refer to each other by number.
struct MetadataGraph {
  const Syntax* root;

  const Syntax* node(const Syntax* number) const { return list_item(entry(root, "nodes"), number_of(number)); }

  // Returns the node that lists the entries of a kind. The root maps names of kinds to lists: keys and data side by
  // side, or (later) one after the other.
  const Syntax* entries(std::string_view kind) const {
    const Syntax* old_start = entry(root, "root");
    const Syntax* start = node(old_start ? old_start : entry(root, "root_index"));
    const Syntax *keys = entry(start, "keys"), *data = entry(start, "data");
    if (!data || data->kind != SyntaxKind::kList) return nullptr;
    for (int64_t i = 0; i < std::ssize(data->children); ++i) {
      bool found = keys ? plain_string(list_item(keys, i)) == kind
                        : i % 2 == 1 && plain_string(entry(node(list_item(data, i - 1)), "data")) == kind;
      if (found) return node(list_item(data, i));
    }
    return nullptr;
  }

  // Returns the text of a constant's tensor in base64: it is in a list beside the graph, or (later) in a separate node.
  const Syntax* bytes(const Syntax* object) const {
    const Syntax* tensors = entry(root, "b64ndarrays");
    const Syntax* attributes = entry(object, "attrs");
    if (!attributes || !tensors) return entry(node(entry(entry(object, "data"), "data")), "data");
    return list_item(tensors, number_of(entry(attributes, "data")));
  }
};

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=' || c == '\n') continue;
    size_t value = kDigits.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  return bytes;
}

// Decodes TVM's file format of a tensor: magic, reserved word, device, rank, dtype, dims, number of bytes, the bytes.
std::optional<Tensor> decode_tensor(std::string_view bytes) {
  constexpr uint64_t kMagic = 0xDD5E40F096B4A13F;
  auto take = [&](auto& value) {
    if (bytes.size() < sizeof value) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return true;
  };
  uint64_t magic = 0, reserved = 0;
  int32_t device_type = 0, device_id = 0, ndim = 0;
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 0;
  bool read = take(magic) && take(reserved) && take(device_type) && take(device_id) && take(ndim) && take(code) &&
              take(bits) && take(lanes);
  if (!read || magic != kMagic || ndim < 0 || ndim > 64 || lanes != 1) return std::nullopt;
  constexpr std::array<const char*, 3> kCodes = {"int", "uint", "float"};
  std::string name = code < 3 ? fmt::format("{}{}", kCodes[code], bits) : code == 4 ? "bfloat16" : "bool";
  bool is_bool = (code == 1 && bits == 1) || code == 6;
  std::optional<DType> dtype = parse_dtype(is_bool ? "bool" : name);
  if (!dtype || (code > 2 && code != 4 && code != 6)) return std::nullopt;
  std::vector<int64_t> shape(static_cast<size_t>(ndim));
  for (int64_t& dim : shape) {
    if (!take(dim)) return std::nullopt;
  }
  int64_t size = 0;
  std::optional<int64_t> count = element_count(shape);
  std::optional<int64_t> wanted = count ? checked_mul(*count, dtype->bytes()) : std::nullopt;
  if (!take(size) || !wanted || size != *wanted || static_cast<size_t>(size) > bytes.size()) return std::nullopt;
  Tensor result = Tensor::empty(shape, *dtype);
  std::memcpy(result.raw(), bytes.data(), static_cast<size_t>(size));
  return result;
}

}  // namespace

void Parser::metadata(const Line& line) {
  const Syntax& call = *line.value;
  std::string_view loader = head_of(call).text;
  if ((loader != "load_json" && loader != "load_safetensors") || !is_call(call) || positional(call) != 1)
    fail(line, "expected metadata = tvm.ir.load_json(...) or I.load_safetensors(...)");
  const Syntax& at = *call.children[1];
  if (loader == "load_safetensors") {
    // The file must be in the text's folder: a text of foreign origin must not reach other files.
    std::filesystem::path file = string(at);
    if (file.has_parent_path()) fail(at, "expected the name of a file in the folder of this text, without a path");
    try {
      side_tensors_ = read_safetensors((std::filesystem::path(origin_->file).parent_path() / file).string());
    } catch (const CompileError& error) {
      fail(at, "{}", error.diagnostics().at(0).message);
    }
    return;
  }
  metadata_text_ = string(at);
  size_t before = diagnostics_.all().size();
  const Syntax* graph = parse_expression(Source{origin_, metadata_text_, at.line, at.column}, *tree_, diagnostics_);
  if (!graph || diagnostics_.all().size() > before) throw Failed();
  metadata_ = graph;
}

// Reads metadata["relax.expr.Constant"][k]
Value Parser::metadata_constant(const Syntax& at) {
  auto missing = [&](const char* why) { fail_with_note(at, "print the module with its constants inline", "{}", why); };
  bool is_there = metadata_ || side_tensors_;
  if (!is_there && unknown_.contains("metadata")) throw Failed();  // it could not be read
  if (!is_there) missing("the constant is not in this text");
  const Syntax& kind_at = *at.children[0];
  bool is_entry = positional(at) == 1 && kind_at.kind == SyntaxKind::kSubscript && positional(kind_at) == 1;
  if (!is_entry) fail(at, "expected metadata[\"kind\"][number]");
  std::string kind = string(*kind_at.children[1]);
  int64_t number = constant_int(*at.children[1]);
  if (side_tensors_) {
    auto it = side_tensors_->find(fmt::format("constant_{}", number));
    if (kind != "relax.expr.Constant" || it == side_tensors_->end()) missing("the file of constants has no such entry");
    return {relaxc::constant(it->second, span(at))};
  }
  MetadataGraph graph{metadata_};
  const Syntax* object = graph.node(list_item(entry(graph.entries(kind), "data"), number));
  if (!object) missing("the metadata of this text has no such entry");
  if (kind != "relax.expr.Constant") fail_unsupported(at, "metadata of kind '{}' is not supported yet", kind);
  const Syntax* encoded = graph.bytes(object);
  bool is_string = encoded && encoded->kind == SyntaxKind::kString;
  std::optional<std::string> bytes = is_string ? decode_base64(string(*encoded)) : std::nullopt;
  std::optional<Tensor> tensor = bytes ? decode_tensor(*bytes) : std::nullopt;
  if (!tensor) missing("the metadata's tensor cannot be decoded");
  return {relaxc::constant(*tensor, span(at))};
}

}  // namespace relaxc::text
