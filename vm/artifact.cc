#include "vm/artifact.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "vm/cpu.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/output_file.h"
#include "vm/serialization.h"
#include "vm/verifier.h"

namespace relaxc::vm {

namespace {

constexpr int64_t kPage = 4096;  // the alignment of sections in the file; the machine's pages may have another size
constexpr std::array<char, 8> kMagic = {'R', 'E', 'L', 'A', 'X', 'C', '\r', '\n'};
// The version of the footer, of the table of sections and of the weights' alignment; raise it when one of them changes.
// The version of the program section follows from its fields (vm/serialization.cc).
constexpr uint64_t kFormatVersion = 2;
constexpr uint64_t kMaxSections = 64;

struct SectionRow {
  std::array<char, 16> name;  // zero padded
  uint64_t offset;            // a multiple of kPage
  uint64_t bytes;
};
static_assert(sizeof(SectionRow) == 32);

struct Footer {
  std::array<char, 8> magic;
  uint64_t format_version;
  uint64_t elf_bytes;  // at offset 0
  uint64_t table_offset;
  uint64_t num_sections;
  uint64_t file_bytes;
  uint64_t hash;  // XXH3-64 of the file up to here
};
static_assert(sizeof(Footer) == 56);

constexpr std::string_view kProgramSection = "program", kWeightsSection = "weights";

// Hashes the bytes that are written.
class HashedFile {
 public:
  explicit HashedFile(const std::string& path) : file_(path, FileKind::kExecutable) { XXH3_64bits_reset(&hash_); }

  void write(const void* data, size_t size) {
    XXH3_64bits_update(&hash_, data, size);
    offset_ += size;
    file_.write(data, size);
  }
  void pad_to(uint64_t offset) {
    static constexpr std::array<char, kPage> kZeros{};
    while (offset_ < offset) write(kZeros.data(), std::min<uint64_t>(kZeros.size(), offset - offset_));
  }
  uint64_t offset() const { return offset_; }
  uint64_t hash() const { return XXH3_64bits_digest(&hash_); }
  void commit() { file_.commit(); }

 private:
  OutputFile file_;
  uint64_t offset_ = 0;
  // The type of the state makes it cache-line aligned.
  XXH3_state_t hash_;
};

// Writes a section by write(its offset) at the next page.
template <class Write>
SectionRow write_section(HashedFile& file, std::string_view section, Write write) {
  file.pad_to((file.offset() + kPage - 1) / kPage * kPage);
  SectionRow row{{}, file.offset(), 0};
  std::ranges::copy(section, row.name.begin());
  write(row.offset);
  row.bytes = file.offset() - row.offset;
  return row;
}

}  // namespace

void write_artifact(const std::string& path, std::span<const std::byte> elf, const Executable& executable,
                    const MappedFiles& sources) {
  for (const auto& source : sources) {
    if (source->is_at(path))
      throw_runtime_error("'{}' holds weights of the model; give the artifact another name", path);
  }
  HashedFile file(path);
  file.write(elf.data(), elf.size());

  std::array<SectionRow, 2> table;
  table[0] = write_section(file, kProgramSection, [&](uint64_t) {
    std::vector<std::byte> bytes = serialize_program(executable);
    file.write(bytes.data(), bytes.size());
  });
  table[1] = write_section(file, kWeightsSection, [&](uint64_t begin) {
    WeightsLayout layout = layout_weights(executable);
    for (size_t i = 0; i < executable.constants.size(); ++i) {
      const Tensor& constant = executable.constants[i];
      file.pad_to(begin + static_cast<uint64_t>(layout.offsets[i]));
      // The bytes are written in pieces, since the contents of a mapped file do not have to be in memory all at once.
      constexpr int64_t kPiece = int64_t{16} << 20;
      for (int64_t done = 0; done < constant.bytes(); done += kPiece) {
        int64_t size = std::min(kPiece, constant.bytes() - done);
        file.write(static_cast<const char*>(constant.raw()) + done, static_cast<size_t>(size));
        release_pages(constant);
      }
    }
  });

  file.pad_to((file.offset() + 7) / 8 * 8);
  Footer footer{kMagic, kFormatVersion, elf.size(), file.offset(), table.size(), 0, 0};
  file.write(table.data(), table.size() * sizeof(SectionRow));
  footer.file_bytes = file.offset() + sizeof(Footer);
  file.write(&footer, offsetof(Footer, hash));
  footer.hash = file.hash();
  file.write(&footer.hash, sizeof footer.hash);
  check_unchanged(sources);
  file.commit();
}

namespace {

// Throws CompileErrors "model.so: error: ...; compile the model again with 'relaxc compile'".
class ArtifactReader {
 public:
  ArtifactReader(const std::string& path, std::shared_ptr<const MappedFile> file)
      : path_(path), file_(std::move(file)), bytes_(file_->bytes()) {}

  void check(ArtifactOptions options) {
    if (bytes_.size() < sizeof(Footer)) damaged("{} bytes are too few for an artifact", bytes_.size());
    std::memcpy(&footer_, bytes_.data() + bytes_.size() - sizeof(Footer), sizeof(Footer));
    if (footer_.magic != kMagic) damaged("the footer is missing: it is not an artifact of relaxc, or it was cut off");
    if (footer_.format_version != kFormatVersion)
      damaged("format version is {}, this runtime reads {}", footer_.format_version, kFormatVersion);
    if (footer_.file_bytes != bytes_.size())
      damaged("the file has {} bytes, its footer says {}", bytes_.size(), footer_.file_bytes);
    if (options.verify_hash) {
      uint64_t hash = XXH3_64bits(bytes_.data(), bytes_.size() - sizeof footer_.hash);
      if (hash != footer_.hash)
        damaged("the content has changed: hash is {:016x}, expected {:016x}", hash, footer_.hash);
    }
    read_table();
  }

  std::span<const std::byte> section(std::string_view wanted) const {
    for (const SectionRow& row : table_) {
      std::string_view name(row.name.data(), strnlen(row.name.data(), row.name.size()));
      if (name == wanted) return bytes_.subspan(row.offset, row.bytes);
    }
    damaged("section '{}' is missing", wanted);
  }

  bool has_elf() const { return footer_.elf_bytes > 0; }

  Span place() const { return span_of_file(path_); }

  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) const {
    fail(place(), "{}; {}", printable(fmt::format(format, std::forward<Args>(args)...), std::string::npos), kRecompile);
  }

 private:
  void read_table() {
    uint64_t size = bytes_.size() - sizeof(Footer);
    if (footer_.num_sections > kMaxSections || footer_.table_offset > size ||
        footer_.num_sections * sizeof(SectionRow) != size - footer_.table_offset) {
      damaged("the section table ({} sections at {}) does not fit the file", footer_.num_sections,
              footer_.table_offset);
    }
    if (footer_.elf_bytes > footer_.table_offset) damaged("the machine code is cut off");
    table_.resize(footer_.num_sections);
    if (!table_.empty())
      std::memcpy(table_.data(), bytes_.data() + footer_.table_offset, table_.size() * sizeof(SectionRow));
    for (const SectionRow& row : table_) {
      if (row.offset % kPage != 0 || row.offset > footer_.table_offset ||
          row.bytes > footer_.table_offset - row.offset) {
        damaged("a section of {} bytes at {} does not fit the file", row.bytes, row.offset);
      }
    }
  }

  const std::string& path_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  Footer footer_{};
  std::vector<SectionRow> table_;
};

class SharedObject final : public KernelLibrary {
 public:
  // Opens, by its descriptor, the file that was mapped and checked: the path may name another file by now. The
  // descriptor stays open as long as the library. The dynamic linker knows libraries by name, and a reused descriptor
  // would let it take a later one for this.
  explicit SharedObject(std::shared_ptr<const MappedFile> file, const ArtifactReader& reader) : file_(std::move(file)) {
    std::string name = fmt::format("/proc/{}/fd/{}", getpid(), file_->descriptor());
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) reader.damaged("the machine code does not load: {}", dlerror());
  }
  ~SharedObject() override { dlclose(handle_); }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  relaxc_kernel find(const std::string& symbol) const override {
    return reinterpret_cast<relaxc_kernel>(dlsym(handle_, symbol.c_str()));
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  void* handle_ = nullptr;
};

// Does everything that precedes loading machine code.
Executable read_executable(const ArtifactReader& reader, const std::shared_ptr<const MappedFile>& file) {
  std::string problem;
  try {
    Executable executable = with_compile_errors(
        {}, [&] { return deserialize(reader.section(kProgramSection), reader.section(kWeightsSection), file); });
    std::vector<std::string> messages = verify(executable);
    if (messages.empty()) return executable;
    problem = "bytecode is unsound: " + messages.front();
  } catch (const CompileError& error) {
    // The errors of section() name the file, those of deserialize() do not.
    if (error.diagnostics().front().span) throw;
    problem = error.diagnostics().front().message;
  }
  reader.damaged("{}", problem);
}

}  // namespace

Artifact load_artifact(const std::string& path, ArtifactOptions options) {
  auto file = with_compile_errors({}, [&] { return MappedFile::open(path); });
  ArtifactReader reader(path, file);
  reader.check(options);
  Artifact artifact{read_executable(reader, file), nullptr, file};
  if (reader.has_elf()) {
    if (std::string problem = why_host_cannot_run(artifact.executable); !problem.empty())
      fail(reader.place(), "{}", problem);
    artifact.library = std::make_shared<SharedObject>(file, reader);
  }
  // The mapped bytes must still be the ones that were checked.
  with_compile_errors(reader.place(), [&] { file->check_unchanged(); });
  return artifact;
}

}  // namespace relaxc::vm
