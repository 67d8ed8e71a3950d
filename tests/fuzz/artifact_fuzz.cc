// The fuzz target of artifacts (./dev fuzz): an input is a whole artifact without machine code. Mutations are of the
// executable's tables, bytecode and strings, or of bytes; hashes are not looked at, so that what lies behind them is
// reached. What the verifier accepts is run, with kernels that do nothing: machine code is trusted, the bytecode that
// calls it is not.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "support/diagnostic.h"
#include "vm/artifact.h"
#include "vm/disassembler.h"
#include "vm/error.h"
#include "vm/program.h"
#include "vm/serialization.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using namespace relaxc;
using namespace relaxc::vm;
using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

// The footer's fields, from the end of the file (vm/artifact.cc).
constexpr size_t kFooterBytes = 64, kMachineCodeBytes = 48, kFileBytes = 24;

// A file without a name in any folder, under a path that others can open.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("artifact", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { close(descriptor_); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  void write(const Bytes& bytes) const {
    if (pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  Bytes read() const {
    Bytes bytes(static_cast<size_t>(lseek(descriptor_, 0, SEEK_END)));
    if (pread(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
    return bytes;
  }

 private:
  int descriptor_;
};

void store(Bytes& bytes, size_t from_end, uint64_t value) {
  std::memcpy(bytes.data() + bytes.size() - from_end, &value, sizeof value);
}

// No machine code, and the true size.
void seal(Bytes& bytes) {
  if (bytes.size() < kFooterBytes) return;
  store(bytes, kMachineCodeBytes, 0);
  store(bytes, kFileBytes, bytes.size());
}

Bytes artifact_of(const Executable& executable) {
  MemoryFile file;
  write_artifact(file.path(), {}, executable);
  return file.read();
}

// ---- Structured mutation --------------------------------------------------------------------------------------------

template <class T>
T& one_of(std::vector<T>& items, Random& random) {
  return items[random() % items.size()];
}

int64_t interesting(int64_t old, Random& random) {
  constexpr std::array<int64_t, 12> kValues = {0,  1,     2,         -1,        INT64_MIN, INT64_MAX,
                                               64, 65536, INT32_MAX, INT32_MIN, -2,        int64_t{1} << 40};
  switch (random() % 4) {
    case 0:
      return kValues[random() % kValues.size()];
    case 1:
      return static_cast<int64_t>(static_cast<uint64_t>(old) + random() % 5 - 2);
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(old) ^ uint64_t{1} << random() % 64);
    default:
      return static_cast<int64_t>(random() % 16);
  }
}

void mutate_text(std::string& text, Random& random) {
  if (text.empty() || random() % 4 == 0) text.insert(random() % (text.size() + 1), 1, static_cast<char>(random()));
  text[random() % text.size()] = static_cast<char>(random());
  if (random() % 8 == 0) text.resize(random() % (2 * text.size() + 1), 'x');
}

// An operand or the opcode of an instruction, or whole instructions.
void mutate_code(Executable& executable, Random& random) {
  std::vector<Word>& code = executable.code;
  if (code.empty()) return;
  size_t at = random() % code.size();
  switch (random() % 8) {
    case 0:
      code[at] = one_of(code, random);
      return;
    case 1: {  // Words of one place at another: often whole instructions.
      size_t from = random() % code.size();
      size_t count = std::min<size_t>({1 + random() % 8, code.size() - at, code.size() - from});
      std::vector<Word> words(code.begin() + static_cast<long>(from), code.begin() + static_cast<long>(from + count));
      std::copy(words.begin(), words.end(), code.begin() + static_cast<long>(at));
      return;
    }
    case 2: {
      code.insert(code.begin() + static_cast<long>(at), interesting(code[at], random));
      auto shift = [&](int64_t& word) {  // unless it was mutated to lie outside
        if (word > static_cast<int64_t>(at) && word < static_cast<int64_t>(code.size())) ++word;
      };
      for (Function& function : executable.functions) {
        shift(function.code_begin);
        shift(function.code_end);
      }
      return;
    }
    default:
      code[at] = interesting(code[at], random);
  }
}

void mutate_info(ValueInfo& info, Random& random) {
  switch (random() % 5) {
    case 0:
      info.kind = static_cast<ValueKind>(random() % kNumValueKinds);
      return;
    case 1:
      info.dtype = random() % 2 == 0 ? std::optional<DType>() : DType::int_(static_cast<int>(8 << random() % 4));
      return;
    case 2:
      mutate_text(info.name, random);
      return;
    case 3:
      if (ValueInfo copy = info; info.fields.size() < 4) info.fields.push_back(std::move(copy));
      return;
    default:
      if (!info.dims || random() % 4 == 0) info.dims.emplace(random() % 5);
      if (!info.dims->empty()) one_of(*info.dims, random).value = interesting(1, random);
  }
}

void mutate_function(Executable& executable, Random& random) {
  if (executable.functions.empty()) return;
  Function& function = one_of(executable.functions, random);
  std::array<int64_t*, 3> numbers = {&function.num_registers, &function.code_begin, &function.code_end};
  std::vector<ValueInfo>& infos = random() % 2 == 0 ? function.inputs : function.outputs;
  switch (random() % 6) {
    case 0: {
      int64_t& number = *numbers[random() % numbers.size()];
      number = interesting(number, random);
      return;
    }
    case 1:
      function.slot_names.resize(random() % (function.slot_names.size() + 3));
      return;
    case 2:
      infos.resize(random() % (infos.size() + 2));
      return;
    case 3:
      if (!infos.empty()) mutate_info(one_of(infos, random), random);
      return;
    case 4:
      mutate_text(function.name, random);
      return;
    default:
      executable.functions.push_back(one_of(executable.functions, random));
  }
}

const Builtin& any_builtin(size_t number) {
  const auto [own, more] = builtins();
  number %= own.size() + more.size();
  return number < own.size() ? own[number] : more[number - own.size()];
}

void mutate_tables(Executable& executable, Random& random) {
  switch (random() % 5) {
    case 0:
      if (!executable.strings.empty()) mutate_text(one_of(executable.strings, random), random);
      return;
    case 1:
      if (!executable.builtins.empty()) {
        executable.builtins[random() % executable.builtins.size()] = std::string(any_builtin(random()).name);
      }
      return;
    case 2:
      if (!executable.kernels.empty()) {
        KernelInfo& kernel = one_of(executable.kernels, random);
        int64_t& number = random() % 2 == 0 ? kernel.num_tensors : kernel.num_scalars;
        number = interesting(number, random);
      }
      return;
    case 3:
      executable.constants.push_back(
          Tensor::of<int64_t>({2}, kInt64, {interesting(1, random), interesting(1, random)}));
      return;
    default:
      mutate_text(executable.metadata["key"], random);
  }
}

// The artifact as its executable; nullptr when it is not one.
std::unique_ptr<Executable> parse(const Bytes& bytes) {
  MemoryFile file;
  file.write(bytes);
  try {
    return std::make_unique<Executable>(load_artifact(file.path(), {.verify_hash = false}).executable);
  } catch (const CompileError&) {
    return nullptr;
  }
}

// ---- Running --------------------------------------------------------------------------------------------------------

int32_t do_nothing(const relaxc_kernel_args*) { return 0; }

Value argument_for(const ValueInfo& info) {
  std::vector<int64_t> shape;
  for (const DimInfo& dim : info.dims.value_or(std::vector<DimInfo>{})) {
    shape.push_back(std::clamp<int64_t>(dim.value < 0 ? 3 : dim.value, 0, 4));
  }
  shape.resize(std::min<size_t>(shape.size(), 6));
  if (info.kind == ValueKind::kShape) return Shape(shape);
  if (info.kind == ValueKind::kInt) return int64_t{3};
  Tensor tensor = Tensor::empty(shape, info.dtype.value_or(kFloat32));
  std::memset(tensor.raw(), 1, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

void run_all(const Program& program) {
  static auto pool = std::make_shared<ThreadPool>(1);
  Session session(program, {.pool = pool, .memory_limit = int64_t{1} << 24, .step_limit = 1000});
  for (const Function& function : program.executable().functions) {
    std::vector<Value> arguments;
    for (const ValueInfo& info : function.inputs) arguments.push_back(argument_for(info));
    try {
      session.run_values(arguments, function.name);
    } catch (const RuntimeError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // The output of the programs that run is not wanted.
  return std::freopen("/dev/null", "w", stdout) == nullptr ? 1 : 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, data + size);
  seal(bytes);
  MemoryFile file;
  file.write(bytes);
  try {
    Executable executable = load_artifact(file.path(), {.verify_hash = false}).executable;
    disassemble(executable);
    LoadOptions options;
    for (KernelInfo& kernel : executable.kernels) {
      kernel.source = KernelSource::kRegistry;
      options.registry.add_kernel(kernel.symbol, do_nothing);
    }
    run_all(Program::from(std::move(executable), nullptr, nullptr, std::move(options)));
  } catch (const CompileError&) {
  } catch (const RuntimeError&) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  Bytes bytes(data, data + size);
  seal(bytes);
  std::unique_ptr<Executable> executable = random() % 8 != 0 ? parse(bytes) : nullptr;
  if (!executable) {
    size_t mutated = LLVMFuzzerMutate(data, size, most);
    bytes.assign(data, data + mutated);
    seal(bytes);
  } else {
    for (size_t left = 1 + random() % 4; left > 0; --left) {
      size_t kind = random() % 8;
      if (kind < 4) {
        mutate_code(*executable, random);
      } else if (kind < 6) {
        mutate_function(*executable, random);
      } else {
        mutate_tables(*executable, random);
      }
    }
    bytes = artifact_of(*executable);
  }
  size_t length = std::min(bytes.size(), most);
  std::memcpy(data, bytes.data(), length);
  return length;
}
