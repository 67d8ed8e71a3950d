// The compiler of the C interface, which is a library of its own that is opened when it is first needed.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "api/compiler.h"
#include "api/handles.h"
#include "support/fork_guard.h"
#include "support/short_text.h"
#include "vm/open_library.h"
#include "vm/shipped_libraries.h"

namespace relaxc::api {

namespace {

constexpr const char *kCompilerFile = "librelaxc_compiler.so", *kEntry = "relaxc_compiler_entry";

// Returns the file that has a symbol as the process finds it, if it is not a library of that name; otherwise null.
const char* other_owner(const char* symbol, std::string_view library) {
  void* found = dlsym(RTLD_DEFAULT, symbol);
  Dl_info owner{};
  if (!found || dladdr(found, &owner) == 0) return nullptr;
  const std::string_view file = owner.dli_fname;
  return file.substr(file.rfind('/') + 1).starts_with(library) ? nullptr : owner.dli_fname;
}

// Returns whether memory of the process comes from elsewhere than the C library. A host may replace operator
// new(size_t) alone.
bool has_own_allocator() {
  return other_owner("malloc", "libc.so") || other_owner("free", "libc.so") || other_owner("_Znwm", "libstdc++");
}

// Returns the command that installs a library that the compiler needs, on Debian and Ubuntu; empty for others.
std::string command_for(const std::string& library) {
  struct Package {
    ShortText<11> library;
    ShortText<15> name;
  };
  constexpr Package kPackages[] = {{"libonnx", "libonnx-dev"},
                                   {"libprotobuf", "libprotobuf-dev"},
                                   {"libfmt", "libfmt-dev"},
                                   {"libzstd", "libzstd1"},
                                   {"libz.", "zlib1g"}};
  for (const Package& package : kPackages) {
    if (library.starts_with(package.library.view())) return std::string("apt-get install ") + package.name.chars;
  }
  const size_t version = library.find_first_of("0123456789");
  if (!library.starts_with("libLLVM") || version == library.npos) return "";
  const size_t end = std::min(library.find_first_not_of("0123456789", version), library.size());
  return "apt-get install libllvm" + library.substr(version, end - version);
}

[[noreturn]] void fail_to_open(const char* reason, const char* remedy) {
  fail_unsupported(
      {},
      "the compiler cannot be opened ({}); {}, or compile the model elsewhere with 'relaxc compile' and load "
      "the artifact",
      reason, remedy);
}

// Returns the remedy for what dlopen refused. The reason begins with the name of the file that lacks.
std::string remedy_for(const std::string& reason) {
  auto says = [&](const char* text) { return reason.find(text) != reason.npos; };
  if (says(" map ") || says("Cannot allocate memory")) return "allow the process more memory";
  if (!says("No such file or directory")) return "install relaxc anew";
  if (says(kCompilerFile)) return formatted("install {} beside the runtime or the program", kCompilerFile);
  const std::string file = reason.substr(0, reason.find(':')), name = file.substr(file.rfind('/') + 1);
  const std::string command = command_for(name);
  return command.empty() ? formatted("install {}", name) : formatted("install {} ({})", name, command);
}

// A library that the compiler shares with a host that has an allocator of its own.
struct SharedLibrary {
  ShortText<11> name;
  ShortText<87> symbol;
  bool has_versions;  // its symbols have, so that one of another version may be there, too
};
constexpr SharedLibrary kShared[] = {
    {"libprotobuf", "_ZN6google8protobuf11MessageLite20ParseFromCodedStreamEPNS0_2io16CodedInputStreamE", false},
    {"libonnx", "_ZN4onnx10ModelProtoD1Ev", false},
    {"libLLVM", "_ZN4llvm11LLVMContextC1Ev", true}};

// Throws where the compiler would run functions that the host exports in place of those that it was linked to. Before
// it is opened (compiler is null) only the name of the file tells, and afterwards the address.
void check_shared(void* compiler) {
  for (const SharedLibrary& library : kShared) {
    const char* file = other_owner(library.symbol.chars, library.name);
    void* found = dlsym(RTLD_DEFAULT, library.symbol.chars);
    if (!file && compiler && found && !library.has_versions && dlsym(compiler, library.symbol.chars) != found)
      file = "a library of the host";
    if (file)
      fail_to_open(
          formatted("the host has an allocator of its own, and {} exports another {}", file, library.name.view())
              .c_str(),
          "link it without -rdynamic, or with -Wl,--exclude-libs,ALL");
  }
}

// Opens the compiler beside this library or the program, or as the dynamic linker finds it. With RTLD_DEEPBIND its
// symbols, and those of its libraries, are its own: the host may have other versions of protobuf and LLVM. Then it
// would not see a host's allocator (a sanitizer's, too), but get memory of it from the C library, so that such a host
// has to share its symbols.
relaxc_compiler_entry_type open_compiler() {
  if (vm::is_static_program()) fail_to_open("a static program opens no libraries", "link it without -static");
  const bool is_shared = has_own_allocator();
  const int flags = RTLD_NOW | RTLD_LOCAL | (is_shared ? 0 : RTLD_DEEPBIND);
  if (is_shared) check_shared(nullptr);
  std::string problem;
  for (const std::string& path : vm::places_of(kCompilerFile)) {
    std::string reason;
    void* handle = vm::open_library(path, flags, reason);
    if (handle && is_shared) check_shared(handle);
    if (void* entry = handle ? dlsym(handle, kEntry) : nullptr)
      return reinterpret_cast<relaxc_compiler_entry_type>(entry);
    if (problem.empty()) problem = handle ? path + " is not the compiler of relaxc" : reason;
  }
  fail_to_open(problem.c_str(), remedy_for(problem).c_str());
}

// Opens it once; a failure is tried again.
relaxc_compiler_entry_type entry() {
  static std::mutex mutex;
  static relaxc_compiler_entry_type opened = nullptr;
  std::lock_guard lock(mutex);
  if (!opened) opened = open_compiler();
  return opened;
}

// The answer of the compiler to a request.
struct Heard {
  int32_t status = RELAXC_OK;
  std::string message, text, cached;
  std::vector<Diagnostic> diagnostics;

  static void failed(void* user, int32_t status, const char* message) {
    auto& heard = *static_cast<Heard*>(user);
    heard.status = status;
    heard.message = message;
  }
  static void place(void* user, const relaxc_error_place* of) {
    auto text = [](const char* value) { return std::string(value ? value : ""); };
    Diagnostic& diagnostic = static_cast<Heard*>(user)->diagnostics.emplace_back();
    diagnostic.message = text(of->message);
    if (!of->file && !of->node) return;
    auto origin = std::make_shared<Origin>();
    origin->file = text(of->file);
    origin->node = text(of->node);
    origin->op_type = text(of->op_type);
    diagnostic.span = {origin, static_cast<uint32_t>(of->line), static_cast<uint32_t>(of->column), 0};
  }
  static void take_cached(void* user, const char* artifact) { static_cast<Heard*>(user)->cached = artifact; }
  static void take_text(void* user, const char* text, size_t length) {
    static_cast<Heard*>(user)->text.assign(text, length);
  }
};

void check_texts(int32_t count, const char* const* texts, const char* name) {
  check_count(count, texts, name);
  for (int32_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) throw_usage_error("{}: item {} (counted from 0) is a null pointer", name, i);
  }
}

// The values of params that become constants, dense, as the compiler reads them.
class BoundValues {
 public:
  explicit BoundValues(relaxc_compile_options& options) {
    for (int32_t i = 0; i < options.num_bound; ++i)
      tensors_.push_back(tensor_of(options.bound[i], formatted("the value of '{}'", options.bound_names[i]).c_str()));
    for (const Tensor& tensor : tensors_) {
      auto* dims = const_cast<int64_t*>(tensor.shape().data());  // DLTensor has no pointers to const
      rows_.push_back({tensor.raw(), {kDLCPU, 0}, tensor.ndim(), dlpack_dtype(tensor.dtype()), dims, nullptr, 0});
    }
    options.bound = rows_.data();
  }
  BoundValues(const BoundValues&) = delete;
  BoundValues& operator=(const BoundValues&) = delete;

 private:
  std::vector<Tensor> tensors_;
  std::vector<DLTensor> rows_;
};

relaxc_compile_options checked(const relaxc_compile_options& options) {
  check_texts(options.num_dims, options.dim_names, "dim_names");
  check_count(options.num_dims, options.dim_values, "dim_values");
  for (int32_t i = 0; i < options.num_dims; ++i) {
    if (options.dim_values[i] < 0) throw_usage_error("dim '{}' is {}", options.dim_names[i], options.dim_values[i]);
  }
  check_texts(options.num_ranges, options.range_names, "range_names");
  check_count(options.num_ranges, options.range_least, "range_least");
  check_count(options.num_ranges, options.range_most, "range_most");
  for (int32_t i = 0; i < options.num_ranges; ++i) {
    if (options.range_least[i] < 0 || options.range_least[i] > options.range_most[i])
      throw_usage_error("dim '{}' may be {} to {}, which no size is", options.range_names[i], options.range_least[i],
                        options.range_most[i]);
  }
  check_texts(options.num_kernels, options.kernels, "kernels");
  check_texts(options.num_types, options.type_names, "type_names");
  check_texts(options.num_types, options.types, "types");
  check_texts(options.num_linked, options.linked, "linked");
  check_texts(options.num_host_symbols, options.host_symbols, "host_symbols");
  check_texts(options.num_bound, options.bound_names, "bound_names");
  check_count(options.num_bound, options.bound, "bound");
  return options;
}

// Throws the error that the compiler answers.
Heard compile(relaxc_compiler_request request, const relaxc_compile_options* options) {
  request.options = checked(options_of(options, "relaxc_compile_options"));
  const BoundValues bound(request.options);
  const ForkGuard guard;  // opening the compiler takes locks, too
  Heard heard;
  const relaxc_compiler_reply reply{&heard, Heard::failed, Heard::place, Heard::take_text, Heard::take_cached};
  if (entry()(&request, &reply) != RELAXC_OK)
    throw Failure{static_cast<relaxc_status>(heard.status), heard.message, std::move(heard.diagnostics)};
  return heard;
}

// A folder for one artifact, which is mapped and needs no name afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent && *parent ? parent : "/tmp") + "/relaxc-XXXXXX";
    if (!mkdtemp(path_.data())) throw_runtime_error("cannot make a folder '{}': {}", path_, std::strerror(errno));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

relaxc_program* compiled(relaxc_compiler_request request, const relaxc_compile_options* options) {
  TemporaryFolder folder;
  const std::string artifact = folder.file("model.so");
  request.artifact = artifact.c_str();
  const relaxc_load_options trusted{.size = sizeof(relaxc_load_options), .trust_contents = 1};
  const Heard heard = compile(request, options);
  if (!heard.cached.empty()) {
    try {
      return load_file(heard.cached, trusted);
    } catch (const RuntimeError&) {  // another process has removed it since, to make room
    }
    request.may_be_cached = 0;
    compile(request, options);
  }
  return load_file(artifact, trusted);
}

relaxc_compiler_request request_for(const void* bytes, size_t num_bytes, const char* name) {
  if (bytes == nullptr && num_bytes > 0) throw_usage_error("bytes is a null pointer");
  return {.path = &given(name, "name"), .bytes = bytes ? bytes : "", .num_bytes = num_bytes};
}

}  // namespace

}  // namespace relaxc::api

using namespace relaxc::api;

relaxc_status relaxc_compile(const char* path, const relaxc_compile_options* options, relaxc_program** program) {
  return call([&] {
    given(program, "program") = nullptr;
    *program = compiled({.path = &given(path, "path"), .may_be_cached = 1}, options);
  });
}

relaxc_status relaxc_compile_memory(const void* bytes, size_t num_bytes, const char* name,
                                    const relaxc_compile_options* options, relaxc_program** program) {
  return call([&] {
    given(program, "program") = nullptr;
    *program = compiled(request_for(bytes, num_bytes, name), options);
  });
}

relaxc_status relaxc_compile_to_file(const char* path, const relaxc_compile_options* options, const char* artifact) {
  return call([&] { compile({.path = &given(path, "path"), .artifact = &given(artifact, "artifact")}, options); });
}

relaxc_status relaxc_module_text(const void* bytes, size_t num_bytes, const char* name,
                                 const relaxc_compile_options* options, char** text) {
  return call([&] {
    given(text, "text") = nullptr;
    relaxc_compiler_request request = request_for(bytes, num_bytes, name);
    if (!bytes) request.bytes = nullptr;
    const std::string result = compile(request, options).text;
    *text = strdup(result.c_str());
    if (!*text) throw std::bad_alloc();
  });
}

void relaxc_string_release(char* text) { std::free(text); }
