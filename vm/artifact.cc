#include "vm/artifact.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "vm/artifact_notes.h"
#include "vm/cpu.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/memory.h"
#include "vm/open_library.h"
#include "vm/output_file.h"
#include "vm/serialization.h"
#include "vm/verifier.h"

namespace relaxc::vm {

namespace {

constexpr std::array<char, 8> kMagic = {'R', 'E', 'L', 'A', 'X', 'C', '\r', '\n'};
// The version of the footer, of the places below, of the weights' alignment, and of the way in which machine code gets
// the C functions that it calls; raise it when one of them changes. The version of the program follows from its fields
// (vm/serialization.cc).
constexpr uint64_t kFormatVersion = 4;

struct Footer {
  std::array<char, 8> magic;
  uint64_t format_version;
  uint64_t elf_bytes;  // at offset 0
  uint64_t program_bytes;
  uint64_t weights_bytes;
  uint64_t file_bytes;
  uint64_t weights_hash;  // XXH3-64 of the weights
  uint64_t hash;          // XXH3-64 of the file up to the weights and of the footer up to here
};
static_assert(sizeof(Footer) == 64);

// Where the parts of the file begin, which follows from their sizes. The file is mapped as a whole, so the parts need
// the alignment of tensors only, not that of pages.
struct Places {
  uint64_t program = 0, weights = 0, footer = 0;
};
Places places_of(const Footer& footer) {
  auto next = [](uint64_t end, uint64_t multiple) { return (end + multiple - 1) / multiple * multiple; };
  constexpr uint64_t kAligned = kAlignment;
  uint64_t program = next(footer.elf_bytes, kAligned), weights = next(program + footer.program_bytes, kAligned);
  return {program, weights, next(weights + footer.weights_bytes, 8)};
}

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void update(const void* data, size_t size) { XXH3_64bits_update(&state_, data, size); }
  uint64_t digest() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;  // its type makes it cache-line aligned
};

// Hashes the bytes that are written, in the part of the file that the writer is in.
class HashedFile {
 public:
  explicit HashedFile(const std::string& path) : file_(path, FileKind::kExecutable) {}

  void write(const void* data, size_t size) {
    part_->update(data, size);
    offset_ += size;
    file_.write(data, size);
  }
  void pad_to(uint64_t offset) {
    static constexpr std::array<char, kAlignment> kZeros{};
    while (offset_ < offset) write(kZeros.data(), std::min<uint64_t>(kZeros.size(), offset - offset_));
  }
  void enter(Hash& part) { part_ = &part; }
  void commit() { file_.commit(); }

 private:
  OutputFile file_;
  uint64_t offset_ = 0;
  Hash* part_ = nullptr;
};

}  // namespace

void write_artifact(const std::string& path, std::span<const std::byte> elf, const Executable& executable,
                    const MappedFiles& sources) {
  for (const auto& source : sources) {
    if (source->is_at(path))
      throw_runtime_error("'{}' holds weights of the model; give the artifact another name", path);
  }
  std::vector<std::byte> program = serialize_program(executable);
  WeightsLayout layout = layout_weights(executable);
  Footer footer{kMagic, kFormatVersion, elf.size(), program.size(), static_cast<uint64_t>(layout.bytes), 0, 0, 0};
  const Places places = places_of(footer);
  footer.file_bytes = places.footer + sizeof(Footer);
  HashedFile file(path);
  Hash code, weights;
  file.enter(code);
  file.write(elf.data(), elf.size());
  file.pad_to(places.program);
  file.write(program.data(), program.size());
  file.pad_to(places.weights);
  file.enter(weights);
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    const Tensor& constant = executable.constants[i];
    file.pad_to(places.weights + static_cast<uint64_t>(layout.offsets[i]));
    // The bytes are written in pieces, since the contents of a mapped file do not have to be in memory all at once.
    constexpr int64_t kPiece = int64_t{16} << 20;
    for (int64_t done = 0; done < constant.bytes(); done += kPiece) {
      int64_t size = std::min(kPiece, constant.bytes() - done);
      file.write(static_cast<const char*>(constant.raw()) + done, static_cast<size_t>(size));
      release_pages(constant);
    }
  }
  file.pad_to(places.footer);
  footer.weights_hash = weights.digest();
  file.enter(code);
  file.write(&footer, offsetof(Footer, hash));
  footer.hash = code.digest();
  file.write(&footer.hash, sizeof footer.hash);
  check_unchanged(sources);
  file.commit();
}

namespace {

// Throws CompileErrors "model.so: error: ...; compile the model again with 'relaxc compile'".
class ArtifactReader {
 public:
  ArtifactReader(const std::string& name, std::shared_ptr<const MappedFile> file)
      : name_(name), file_(std::move(file)), bytes_(file_->bytes()) {}

  void check(ArtifactOptions options) {
    if (bytes_.empty()) fail(place(), "the file is empty; {}", kRecompile);
    check_kind();
    if (bytes_.size() < sizeof(Footer)) damaged("{} bytes are too few for an artifact", bytes_.size());
    std::memcpy(&footer_, bytes_.data() + bytes_.size() - sizeof(Footer), sizeof(Footer));
    if (footer_.magic != kMagic && std::memcmp(bytes_.data(),
                                               "\x7f"
                                               "ELF",
                                               4) != 0)
      fail(place(), "not an artifact of relaxc; 'relaxc compile MODEL -o model.so' makes one of an ONNX model");
    if (footer_.magic != kMagic) damaged("the footer is missing: it is not an artifact of relaxc, or it was cut off");
    if (footer_.format_version != kFormatVersion)
      damaged("format version is {}, this runtime reads {}", footer_.format_version, kFormatVersion);
    if (footer_.file_bytes != bytes_.size())
      damaged("the file has {} bytes, its footer says {}", bytes_.size(), footer_.file_bytes);
    places_ = places_of(footer_);
    // Sizes above the file's might have overflowed in the places.
    uint64_t most = std::max({footer_.elf_bytes, footer_.program_bytes, footer_.weights_bytes});
    if (most > bytes_.size() || places_.footer + sizeof(Footer) != bytes_.size())
      damaged("{} bytes of machine code, {} of bytecode and {} of weights do not fit the file", footer_.elf_bytes,
              footer_.program_bytes, footer_.weights_bytes);
    if (!options.verify_hash) return;
    Hash code;
    code.update(bytes_.data(), places_.weights);
    code.update(&footer_, offsetof(Footer, hash));
    if (code.digest() != footer_.hash)
      damaged("the content has changed: hash is {:016x}, expected {:016x}", code.digest(), footer_.hash);
  }

  std::span<const std::byte> program() const { return bytes_.subspan(places_.program, footer_.program_bytes); }
  std::span<const std::byte> weights() const { return bytes_.subspan(places_.weights, footer_.weights_bytes); }

  // The bytes that the hash of the weights is over.
  std::span<const std::byte> hashed_weights() const {
    return bytes_.subspan(places_.weights, places_.footer - places_.weights);
  }
  uint64_t weights_hash() const { return footer_.weights_hash; }
  uint64_t hash() const { return footer_.hash; }  // of all, since it covers the hash of the weights

  std::span<const std::byte> elf() const { return bytes_.first(footer_.elf_bytes); }
  bool has_elf() const { return footer_.elf_bytes > 0; }

  Span place() const { return span_of_file(name_); }

  // A file of another kind gets a message about that kind, not about a damaged artifact, where the program has it.
  void check_kind() const {
    if (name_content == nullptr) return;
    auto content = name_content({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
    if (!content || content->kind == ContentKind::kLibrary) return;
    const bool is_source = content->kind == ContentKind::kModel || content->kind == ContentKind::kText;
    if (is_source) content->remedy = "'relaxc compile' makes an artifact of a model or a module as text";
    fail(place(), "not an artifact: {}", to_string(*content));
  }

  template <class... Args>
  [[noreturn]] void damaged(FormatString<Args...> pattern, const Args&... args) const {
    fail(place(), "{}; {}", printable(formatted(pattern, args...), std::string::npos), kRecompile);
  }

 private:
  const std::string& name_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  Footer footer_{};
  Places places_;
};

// Returns the remedy where the system, and not the file, is why the linker did not open the path in /proc; else null.
const char* remedy_of_system(const std::string& path, std::string_view problem) {
  constexpr std::pair<const char*, const char*> kRemedies[] = {
      {"failed to map segment",
       "where the file system is mounted noexec, put the file on another one (for compiled models in the cache: "
       "--cache "
       "DIR or RELAXC_CACHE)"},
      {"Too many open files in system", "the machine has too many files open"},
      {"Too many open files", "the process has too many files open: close some, or raise the limit (ulimit -n)"}};
  for (const auto& [text, remedy] : kRemedies) {
    if (problem.find(text) != std::string_view::npos) return remedy;
  }
  if (access(path.c_str(), R_OK) == 0) return nullptr;
  return "it is opened by its descriptor, for which /proc has to be mounted, and be that of this process's namespace";
}

class SharedObject final : public KernelLibrary {
 public:
  // Opens, by its descriptor, the file that was mapped and checked: the path may name another file by now. The
  // descriptor stays open as long as the library.
  explicit SharedObject(std::shared_ptr<const MappedFile> file, const ArtifactReader& reader) : file_(std::move(file)) {
    const std::string path = formatted("/proc/{}/fd/{}", getpid(), file_->descriptor());
    std::string problem;
    handle_ = open_state(*file_, path, reader.elf(), reader.hash(), problem);
    if (handle_ == nullptr) fail_to_open(path, problem, reader);
  }
  ~SharedObject() override { dlclose(handle_); }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  relaxc_kernel find(const std::string& symbol) const override {
    return reinterpret_cast<relaxc_kernel>(dlsym(handle_, symbol.c_str()));
  }
  void** find_slot(const std::string& function) const override {
    return static_cast<void**>(dlsym(handle_, slot_symbol(function).c_str()));
  }

 private:
  [[noreturn]] static void fail_to_open(const std::string& path, const std::string& problem,
                                        const ArtifactReader& reader) {
    constexpr std::string_view kMissing = "undefined symbol: ";
    if (problem.starts_with(kMissing))
      fail(reader.place(),
           "the machine code needs '{}', which neither the artifact nor this program has; link the program with the "
           "library that has it, or link it into the artifact (relaxc compile --link)",
           printable(problem.substr(kMissing.size())));
    const char* remedy = remedy_of_system(path, problem);
    if (remedy != nullptr)
      fail(reader.place(), "the machine code does not load: {}; {}", printable(problem, std::string::npos), remedy);
    reader.damaged("the machine code does not load: {}", problem);
  }
  std::shared_ptr<const MappedFile> file_;
  void* handle_ = nullptr;
};

// Does everything that precedes loading machine code.
Executable read_executable(const ArtifactReader& reader, const std::shared_ptr<const MappedFile>& file) {
  std::string problem;
  try {
    Executable executable =
        with_compile_errors({}, [&] { return deserialize(reader.program(), reader.weights(), file); });
    std::vector<std::string> messages = verify(executable);
    if (messages.empty()) return executable;
    problem = "bytecode is unsound: " + messages.front();
  } catch (const CompileError& error) {
    problem = error.diagnostics().front().message;
  }
  reader.damaged("{}", problem);
}

}  // namespace

void WeightsCheck::run() const {
  std::call_once(once_, [&] {
    const uint64_t hash = XXH3_64bits(bytes_.data(), bytes_.size());
    if (hash != expected_)
      problem_ = printable(formatted("{}: the weights have changed: hash is {:016x}, expected {:016x}; {}", name_, hash,
                                     expected_, kRecompile),
                           std::string::npos);
  });
  if (!problem_.empty()) throw_runtime_error("{}", problem_);
}

ArtifactParts parts_of_artifact(std::span<const std::byte> file) {
  Footer footer{};
  std::memcpy(&footer, file.data() + file.size() - sizeof footer, sizeof footer);
  return {footer.elf_bytes, footer.program_bytes, footer.weights_bytes};
}

Artifact load_artifact(const std::string& path, ArtifactOptions options) {
  const std::string& name = options.name.empty() ? path : options.name;
  auto file = with_compile_errors({}, [&] { return MappedFile::open(path, name); });
  ArtifactReader reader(name, file);
  reader.check(options);
  Artifact artifact{read_executable(reader, file), nullptr, file, nullptr};
  if (options.verify_hash)
    artifact.weights = std::make_shared<WeightsCheck>(name, reader.hashed_weights(), reader.weights_hash());
  if (reader.has_elf() && options.loads_code) {
    if (std::string problem = why_host_cannot_run(artifact.executable); !problem.empty())
      fail(reader.place(), "{}", problem);
    artifact.library = std::make_shared<SharedObject>(file, reader);
  }
  // The mapped bytes must still be the ones that were checked.
  with_compile_errors(reader.place(), [&] { file->check_unchanged(); });
  return artifact;
}

}  // namespace relaxc::vm
