#include "vm/serialization.h"

#include <bit>
#include <cstring>

#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "vm/memory.h"

namespace relaxc::vm {

static_assert(std::endian::native == std::endian::little, "artifacts are little-endian");

namespace {

// Begins the program bytes and is followed by kInstructionSet; its last byte is the version of the tables that this
// file writes. kInstructionSet is the version of the bytecode in them and changes by itself.
constexpr uint64_t kProgramMagic = 0x04'4347'5250'4c52'76ull;

int64_t align_up(int64_t offset) { return ceil_div(offset, kAlignment) * kAlignment; }

class ByteWriter {
 public:
  void integer(int64_t value) { raw(&value, sizeof value); }
  void byte(uint8_t value) { raw(&value, 1); }
  void string(const std::string& text) {
    integer(static_cast<int64_t>(text.size()));
    raw(text.data(), text.size());
  }
  void words(const std::vector<int64_t>& values) {
    integer(static_cast<int64_t>(values.size()));
    raw(values.data(), values.size() * sizeof(int64_t));
  }
  void raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
  std::vector<std::byte> bytes;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  int64_t integer() {
    int64_t value;
    raw(&value, sizeof value);
    return value;
  }
  uint8_t byte() {
    uint8_t value;
    raw(&value, 1);
    return value;
  }
  // Reads a number of items that take at least `item_bytes` each. It is never more than the remaining bytes can hold,
  // so that a damaged count cannot cause a large allocation.
  size_t count(size_t item_bytes) {
    int64_t value = integer();
    if (value < 0 || static_cast<uint64_t>(value) > bytes_.size() / item_bytes) {
      fail({}, "program section is damaged: count {} with {} bytes left", value, bytes_.size());
    }
    return static_cast<size_t>(value);
  }
  std::string string() {
    std::string text(count(1), '\0');
    raw(text.data(), text.size());
    return text;
  }
  std::vector<int64_t> words() {
    std::vector<int64_t> values(count(sizeof(int64_t)));
    raw(values.data(), values.size() * sizeof(int64_t));
    return values;
  }
  // Reads an enumerator below `limit`.
  uint8_t enumerator(int limit, std::string_view what) {
    uint8_t value = byte();
    if (value >= limit) fail({}, "program section is damaged: {} {} is unknown", what, value);
    return value;
  }
  void expect_end() const {
    if (!bytes_.empty()) fail({}, "program section is damaged: {} bytes too many", bytes_.size());
  }

 private:
  void raw(void* data, size_t size) {
    if (size > bytes_.size()) fail({}, "program section is damaged: {} bytes left, {} needed", bytes_.size(), size);
    if (size != 0) std::memcpy(data, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;
};

DType read_dtype(ByteReader& in) {
  int64_t word = in.integer();
  auto dtype = unpack_dtype(word);
  if (!dtype) fail({}, "program section is damaged: dtype {} is unknown", word);
  return *dtype;
}

void write(ByteWriter& out, const ValueInfo& info) {
  out.string(info.name);
  out.byte(static_cast<uint8_t>(info.kind));
  out.byte(info.dtype.has_value());
  if (info.dtype) out.integer(pack_dtype(*info.dtype));
  out.byte(info.dims.has_value());
  if (!info.dims) return;
  out.integer(static_cast<int64_t>(info.dims->size()));
  for (const DimInfo& dim : *info.dims) {
    out.integer(dim.value);
    out.string(dim.text);
  }
}

ValueInfo read_value_info(ByteReader& in) {
  ValueInfo info;
  info.name = in.string();
  info.kind = static_cast<ValueKind>(in.enumerator(static_cast<int>(ValueKind::kStorage) + 1, "value kind"));
  if (in.enumerator(2, "flag") != 0) info.dtype = read_dtype(in);
  if (in.enumerator(2, "flag") == 0) return info;
  info.dims.emplace();
  for (size_t left = in.count(16); left > 0; --left) {
    int64_t value = in.integer();
    info.dims->push_back({value, in.string()});
  }
  return info;
}

void write(ByteWriter& out, const std::vector<ValueInfo>& infos) {
  out.integer(static_cast<int64_t>(infos.size()));
  for (const ValueInfo& info : infos) write(out, info);
}

std::vector<ValueInfo> read_value_infos(ByteReader& in) {
  std::vector<ValueInfo> infos;
  for (size_t left = in.count(11); left > 0; --left) infos.push_back(read_value_info(in));
  return infos;
}

void write(ByteWriter& out, const std::vector<std::string>& texts) {
  out.integer(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) out.string(text);
}

std::vector<std::string> read_strings(ByteReader& in) {
  std::vector<std::string> texts;
  for (size_t left = in.count(8); left > 0; --left) texts.push_back(in.string());
  return texts;
}

void write(ByteWriter& out, const Function& function) {
  out.string(function.name);
  write(out, function.inputs);
  write(out, function.outputs);
  out.integer(function.num_registers);
  write(out, function.slot_names);
  out.integer(function.code_begin);
  out.integer(function.code_end);
  out.words(function.places);
}

Function read_function(ByteReader& in, size_t code_words) {
  Function function;
  function.name = in.string();
  function.inputs = read_value_infos(in);
  function.outputs = read_value_infos(in);
  function.num_registers = in.integer();
  function.slot_names = read_strings(in);
  function.code_begin = in.integer();
  function.code_end = in.integer();
  function.places = in.words();
  if (function.code_begin < 0 || function.code_begin > function.code_end ||
      function.code_end > static_cast<int64_t>(code_words)) {
    fail({}, "program section is damaged: function '{}' has words {} to {} of {}", function.name, function.code_begin,
         function.code_end, code_words);
  }
  return function;
}

void write(ByteWriter& out, const KernelInfo& kernel) {
  out.string(kernel.symbol);
  out.string(kernel.display_name);
  out.byte(static_cast<uint8_t>(kernel.source));
  out.integer(kernel.num_tensors);
  out.integer(kernel.num_scalars);
}

KernelInfo read_kernel(ByteReader& in) {
  KernelInfo kernel;
  kernel.symbol = in.string();
  kernel.display_name = in.string();
  kernel.source = static_cast<KernelSource>(in.enumerator(2, "kernel source"));
  kernel.num_tensors = in.integer();
  kernel.num_scalars = in.integer();
  return kernel;
}

Tensor read_constant(ByteReader& in, std::span<const std::byte> weights, const std::shared_ptr<const void>& owner) {
  DType dtype = read_dtype(in);
  std::vector<int64_t> shape = in.words();
  int64_t offset = in.integer();
  auto count = element_count(shape);
  auto bytes = count ? checked_mul(*count, dtype.bytes()) : std::nullopt;
  int64_t available = static_cast<int64_t>(weights.size());
  if (!bytes || offset < 0 || offset % kAlignment != 0 || offset > available || *bytes > available - offset) {
    fail({}, "program section is damaged: a constant at offset {} does not fit the {} bytes of weights", offset,
         available);
  }
  // Read-only by contract: no instruction writes to a constant.
  auto* data = const_cast<std::byte*>(weights.data() + offset);
  return Tensor::view(std::move(shape), dtype, data, owner);
}

}  // namespace

WeightsLayout layout_weights(const Executable& executable) {
  WeightsLayout layout;
  for (const Tensor& constant : executable.constants) {
    layout.offsets.push_back(align_up(layout.bytes));
    layout.bytes = layout.offsets.back() + constant.bytes();
  }
  return layout;
}

std::vector<std::byte> serialize_program(const Executable& executable) {
  ByteWriter out;
  out.integer(static_cast<int64_t>(kProgramMagic));
  out.integer(static_cast<int64_t>(kInstructionSet));
  out.words(executable.code);
  out.integer(static_cast<int64_t>(executable.functions.size()));
  for (const Function& function : executable.functions) write(out, function);
  out.integer(static_cast<int64_t>(executable.kernels.size()));
  for (const KernelInfo& kernel : executable.kernels) write(out, kernel);
  write(out, executable.builtins);
  write(out, executable.strings);
  out.integer(static_cast<int64_t>(executable.metadata.size()));
  for (const auto& [key, value] : executable.metadata) {
    out.string(key);
    out.string(value);
  }
  WeightsLayout layout = layout_weights(executable);
  out.integer(static_cast<int64_t>(executable.constants.size()));
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    out.integer(pack_dtype(executable.constants[i].dtype()));
    out.words(executable.constants[i].shape());
    out.integer(layout.offsets[i]);
  }
  return std::move(out.bytes);
}

std::vector<std::byte> serialize_weights(const Executable& executable) {
  WeightsLayout layout = layout_weights(executable);
  std::vector<std::byte> bytes(static_cast<size_t>(layout.bytes));
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    const Tensor& constant = executable.constants[i];
    if (constant.bytes() == 0) continue;
    std::memcpy(bytes.data() + layout.offsets[i], constant.raw(), static_cast<size_t>(constant.bytes()));
  }
  return bytes;
}

Executable deserialize(std::span<const std::byte> program, std::span<const std::byte> weights,
                       std::shared_ptr<const void> owner) {
  if (reinterpret_cast<uintptr_t>(weights.data()) % kAlignment != 0) {
    fail({}, "weights section is not aligned to {} bytes", kAlignment);
  }
  ByteReader in(program);
  bool is_known = in.integer() == static_cast<int64_t>(kProgramMagic);
  if (!is_known || in.integer() != static_cast<int64_t>(kInstructionSet)) {
    fail({}, "program section is damaged or of another version of relaxc");
  }
  Executable executable;
  executable.code = in.words();
  for (size_t left = in.count(64); left > 0; --left) {
    executable.functions.push_back(read_function(in, executable.code.size()));
  }
  for (size_t left = in.count(33); left > 0; --left) executable.kernels.push_back(read_kernel(in));
  executable.builtins = read_strings(in);
  executable.strings = read_strings(in);
  for (size_t left = in.count(16); left > 0; --left) {
    std::string key = in.string();
    executable.metadata[key] = in.string();
  }
  for (size_t left = in.count(24); left > 0; --left) {
    executable.constants.push_back(read_constant(in, weights, owner));
  }
  in.expect_end();
  return executable;
}

}  // namespace relaxc::vm
