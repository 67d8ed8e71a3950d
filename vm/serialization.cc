#include "vm/serialization.h"

#include <bit>
#include <cstring>

#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "vm/bytecode.h"
#include "vm/memory.h"

namespace relaxc::vm {

static_assert(std::endian::native == std::endian::little, "artifacts are little-endian");

namespace {

[[noreturn]] void damaged(const std::string& how) { fail({}, "program section is damaged: {}", how); }

// An archive visits the members of a struct in order. ByteWriter appends them to the bytes, ByteReader sets them from
// the bytes, FormatHash hashes them: each struct's order is in one function transfer().
class ByteWriter {
 public:
  void raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
  void integer(const int64_t& value) { raw(&value, sizeof value); }
  template <class E>
  void enumerator(const E& value, int /*limit*/, std::string_view /*what*/) {
    uint8_t byte = static_cast<uint8_t>(value);
    raw(&byte, 1);
  }
  void count(size_t size, size_t /*item_bytes*/) { integer(static_cast<int64_t>(size)); }
  template <class Container>
  void sized(const Container& values) {
    count(values.size(), 1);
    raw(values.data(), values.size() * sizeof(values[0]));
  }
  template <class T, class Item>
  void list(const std::vector<T>& values, size_t item_bytes, Item item) {
    count(values.size(), item_bytes);
    for (const T& value : values) item(value);
  }
  template <class T, class Item>
  void optional(const std::optional<T>& value, Item item) {
    enumerator(value.has_value(), 2, "flag");
    if (value) item(*value);
  }

  std::vector<std::byte> bytes;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void raw(void* data, size_t size) {
    if (size > bytes_.size()) damaged(formatted("{} bytes left, {} needed", bytes_.size(), size));
    if (size != 0) std::memcpy(data, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  void integer(int64_t& value) { raw(&value, sizeof value); }
  // Reads an enumerator below `limit`.
  template <class E>
  void enumerator(E& value, int limit, std::string_view what) {
    uint8_t byte;
    raw(&byte, 1);
    if (byte >= limit) damaged(formatted("{} {} is unknown", what, byte));
    value = static_cast<E>(byte);
  }
  // Reads a number of items that take at least `item_bytes` each. It is never more than the remaining bytes can hold,
  // so that a damaged count cannot cause a large allocation.
  size_t count(size_t item_bytes) {
    int64_t value;
    integer(value);
    if (value < 0 || static_cast<uint64_t>(value) > bytes_.size() / item_bytes)
      damaged(formatted("a count of {} does not fit the {} bytes left", value, bytes_.size()));
    return static_cast<size_t>(value);
  }
  template <class Container>
  void sized(Container& values) {
    values.resize(count(sizeof(values[0])));
    raw(values.data(), values.size() * sizeof(values[0]));
  }
  template <class T, class Item>
  void list(std::vector<T>& values, size_t item_bytes, Item item) {
    for (size_t left = count(item_bytes); left > 0; --left) item(values.emplace_back());
  }
  template <class T, class Item>
  void optional(std::optional<T>& value, Item item) {
    bool has_value;
    enumerator(has_value, 2, "flag");
    if (has_value) item(value.emplace());
  }
  void expect_end() const {
    if (!bytes_.empty()) damaged(formatted("{} bytes too many", bytes_.size()));
  }

 private:
  std::span<const std::byte> bytes_;
};

// Hashes the bytes that ByteWriter would append, when relaxc is compiled.
class FormatHash {
 public:
  constexpr void integer(const int64_t& value) { hash.number(value); }
  constexpr void enumerator(const auto& value, int limit, std::string_view /*what*/) {
    hash.number(static_cast<int64_t>(value) * 256 + limit);
  }
  constexpr void sized(const auto& values) {
    hash.number(std::ssize(values));
    for (const auto& value : values) hash.number(static_cast<int64_t>(value));
  }
  template <class Item>
  constexpr void list(const auto& values, size_t item_bytes, Item item) {
    hash.number(std::ssize(values) * 256 + static_cast<int64_t>(item_bytes));
    for (const auto& value : values) item(value);
  }
  template <class Item>
  constexpr void optional(const auto& value, Item item) {
    hash.number(value.has_value());
    if (value) item(*value);
  }

  ConstantHash hash;
};

constexpr void transfer(FormatHash& archive, DType dtype) { archive.integer(pack_dtype(dtype)); }
void transfer(ByteWriter& out, DType dtype) { out.integer(pack_dtype(dtype)); }
void transfer(ByteReader& in, DType& dtype) {
  int64_t word;
  in.integer(word);
  auto known = unpack_dtype(word);
  if (!known) damaged(formatted("dtype {} is unknown", word));
  dtype = *known;
}

template <class Archive>
constexpr void transfer_texts(Archive& archive, auto& texts) {
  archive.list(texts, 8, [&](auto& text) { archive.sized(text); });
}

template <class Archive>
constexpr void transfer_values(Archive& archive, auto& infos, int depth = 0) {
  if (depth > kMaxTupleDepth) damaged(formatted("a tuple type is nested more than {} deep", kMaxTupleDepth));
  archive.list(infos, 20, [&](auto& info) {
    archive.sized(info.name);
    archive.enumerator(info.kind, kNumValueKinds, "value kind");
    archive.optional(info.dtype, [&](auto& dtype) { transfer(archive, dtype); });
    archive.optional(info.dims, [&](auto& dims) {
      archive.list(dims, 32, [&](auto& dim) {
        archive.integer(dim.value);
        archive.sized(dim.text);
        archive.integer(dim.least);
        archive.integer(dim.most);
      });
    });
    archive.enumerator(info.is_optional, 2, "flag");
    transfer_values(archive, info.fields, depth + 1);
  });
}

// Everything but metadata and constants.
template <class Archive>
constexpr void transfer_code(Archive& archive, auto& executable) {
  archive.sized(executable.code);
  archive.list(executable.functions, 65, [&](auto& function) {
    archive.sized(function.name);
    archive.enumerator(function.is_public, 2, "flag");
    transfer_values(archive, function.inputs);
    transfer_values(archive, function.outputs);
    archive.integer(function.num_registers);
    transfer_texts(archive, function.slot_names);
    archive.integer(function.code_begin);
    archive.integer(function.code_end);
    archive.sized(function.places);
  });
  archive.list(executable.kernels, 57, [&](auto& kernel) {
    archive.sized(kernel.symbol);
    archive.sized(kernel.display_name);
    archive.enumerator(kernel.source, 2, "kernel source");
    archive.integer(kernel.num_tensors);
    archive.integer(kernel.num_scalars);
    archive.sized(kernel.operations);
    archive.list(kernel.accesses, 8, [&](auto& formula) { archive.sized(formula); });
    archive.sized(kernel.rule);
  });
  transfer_texts(archive, executable.builtins);
  transfer_texts(archive, executable.strings);
}

Tensor read_constant(ByteReader& in, std::span<const std::byte> weights, const std::shared_ptr<const void>& owner) {
  DType dtype;
  std::vector<int64_t> shape;
  int64_t offset;
  transfer(in, dtype);
  in.sized(shape);
  in.integer(offset);
  auto bytes = tensor_bytes(shape, dtype);
  int64_t available = std::ssize(weights);
  if (!bytes || offset < 0 || offset % kAlignment != 0 || offset > available || *bytes > available - offset)
    damaged(formatted("a constant at offset {} does not fit the {} bytes of weights", offset, available));
  // Read-only by contract: no instruction writes to a constant.
  auto* data = const_cast<std::byte*>(weights.data() + offset);
  Tensor constant = Tensor::view(std::move(shape), dtype, data, owner);
  if (dtype.is_string() && !has_sound_strings(constant, available - offset))
    damaged(formatted("the strings of a constant at offset {} do not fit the {} bytes of weights", offset, available));
  return constant;
}

void write_tables(ByteWriter& out, const Executable& executable) {
  transfer_code(out, executable);
  out.count(executable.metadata.size(), 16);
  for (const auto& [key, value] : executable.metadata) {
    out.sized(key);
    out.sized(value);
  }
  WeightsLayout layout = layout_weights(executable);
  out.count(executable.constants.size(), 24);
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    transfer(out, executable.constants[i].dtype());
    out.sized(executable.constants[i].shape());
    out.integer(layout.offsets[i]);
  }
}

// The tables of Executable that transfer_code visits.
struct CodeTables {
  std::vector<Function> functions;
  std::vector<Word> code;
  std::vector<KernelInfo> kernels;
  std::vector<std::string> builtins, strings;
};

// The version with which the program section begins. It follows from the instruction set and from the bytes of tables
// with entries everywhere. Their values differ, so that exchanging two fields changes it, too. What stands behind these
// tables (write_tables) has a version of its own.
constexpr int64_t kProgramVersion = [] {
  constexpr int64_t kVersionOfRest = 1;
  ValueInfo field{"y", ValueKind::kInt, kInt32, std::vector<DimInfo>{{15, "m", 16, 17}}};
  ValueInfo value{"x", ValueKind::kShape, kInt64, std::vector<DimInfo>{{1, "n", 18, 19}}, {field}, true};
  CodeTables one;
  one.functions = {{"main", true, {value}, {value, value}, 2, {"a", "b", "c"}, 3, 4, {5, 6, 7, 8}}};
  one.code = {9};
  one.kernels = {{"symbol", "display name", KernelSource::kRegistry, 10, 11, "operations", {"accesses"}, "rule"}};
  one.builtins = {"builtin"};
  one.strings = {"string", "another"};
  FormatHash archive;
  archive.integer(static_cast<int64_t>(hash_instructions(kInstructions)));
  archive.integer(kVersionOfRest);
  archive.integer(static_cast<int64_t>(DTypeCode::kFloat4E2M1FN));  // the last: a code before it renumbers others
  transfer_code(archive, one);
  return static_cast<int64_t>(archive.hash.value());
}();

}  // namespace

WeightsLayout layout_weights(const Executable& executable) {
  WeightsLayout layout;
  for (const Tensor& constant : executable.constants) {
    layout.offsets.push_back(round_up(layout.bytes, kAlignment));
    layout.bytes = layout.offsets.back() + constant.bytes();
  }
  return layout;
}

std::vector<std::byte> serialize_program(const Executable& executable) {
  ByteWriter out;
  out.integer(kProgramVersion);
  write_tables(out, executable);
  return std::move(out.bytes);
}

Executable deserialize(std::span<const std::byte> program, std::span<const std::byte> weights,
                       std::shared_ptr<const void> owner) {
  if (reinterpret_cast<uintptr_t>(weights.data()) % kAlignment != 0)
    fail({}, "weights section is not aligned to {} bytes", kAlignment);
  ByteReader in(program);
  int64_t version;
  in.integer(version);
  if (version != kProgramVersion) fail({}, "program section is damaged or of another version of relaxc");
  Executable executable;
  transfer_code(in, executable);
  for (const Function& function : executable.functions) {
    int64_t words = std::ssize(executable.code);
    if (function.code_begin < 0 || function.code_begin > function.code_end || function.code_end > words)
      damaged(formatted("function '{}' has words {} to {} of {}", function.name, function.code_begin, function.code_end,
                        words));
  }
  for (size_t left = in.count(16); left > 0; --left) {
    std::string key;
    in.sized(key);
    in.sized(executable.metadata[key]);
  }
  for (size_t left = in.count(24); left > 0; --left) executable.constants.push_back(read_constant(in, weights, owner));
  in.expect_end();
  return executable;
}

}  // namespace relaxc::vm
