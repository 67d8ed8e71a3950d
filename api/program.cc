// Programs of the C interface: loading, saving, and their declarations.
#include <algorithm>

#include "api/handles.h"
#include "support/printable.h"
#include "support/version.h"
#include "vm/artifact.h"
#include "vm/output_file.h"

namespace relaxc::api {

void check_size(const char* name, std::span<const size_t> sizes, size_t size, const std::byte* bytes) {
  constexpr size_t kMostLater = 4096;  // bytes that later versions may add; a larger size was never set
  const size_t known = sizes.back();
  const bool is_later = size > known && size - known <= kMostLater && size % alignof(size_t) == 0;
  if (!is_later && std::ranges::find(sizes, size) == sizes.end())
    throw_usage_error("the member size of {} is {}, which no version of it has: use sizeof({})", name, size, name);
  if (is_later && std::any_of(bytes + known, bytes + size, [](std::byte byte) { return byte != std::byte{0}; }))
    throw_usage_error(
        "{} has a value that is not zero behind the members that this library knows, which are {} bytes: fill the rest "
        "of the struct with zeros, or use the library of the header that the host was built with",
        name, known);
}

const vm::Function& function_of(const Program& program, const char* name) { return program.function(name ? name : ""); }

DLDataType dlpack_dtype(DType dtype) {
  if (dtype.is_string()) return {RELAXC_STRING_CODE, 64, 1};
  return {static_cast<uint8_t>(dlpack_code(dtype)), dtype.bits, dtype.lanes};
}

const std::vector<relaxc_value_info>* Declarations::of(const std::vector<vm::ValueInfo>& infos) {  // NOLINT: bounded
  std::vector<relaxc_value_info> result;
  for (const vm::ValueInfo& info : infos) {
    relaxc_value_info row{};
    row.name = text(info.name);
    row.type = text(type_text(info));
    row.kind = static_cast<int32_t>(info.kind);
    row.optional = info.is_optional;
    row.has_dtype = info.dtype.has_value();
    if (info.dtype) row.dtype = dlpack_dtype(*info.dtype);
    row.dtype_name = text(info.dtype ? to_string(*info.dtype) : "");
    row.rank = info.dims ? static_cast<int32_t>(info.dims->size()) : -1;
    if (info.dims) {
      std::vector<relaxc_dim>& dims = dims_.emplace_front();
      for (const vm::DimInfo& dim : *info.dims) dims.push_back({dim.value, text(dim.text), dim.least, dim.most});
      row.dims = dims.data();
    }
    row.num_fields = static_cast<int32_t>(info.fields.size());
    if (!info.fields.empty()) row.fields = of(info.fields)->data();
    result.push_back(row);
  }
  return &lists_.emplace_front(std::move(result));
}

// The library has the table of kinds of files.
[[maybe_unused]] static const bool kNamesContent = (name_kinds_of_files(), true);

static LoadOptions load_options(const relaxc_load_options& options) {
  check_flag(options.trust_contents, "trust_contents");
  return {.verify_hash = options.trust_contents == 0};
}

relaxc_program* load_file(const std::string& path, const relaxc_load_options& options) {
  return new relaxc_program(Program::load(path, load_options(options)));
}

namespace {

// Returns what `find` gives for a declaration of the function; the message of a failure is noted.
template <class Result, class Find>
Result declared(const relaxc_program* program, const char* function, Result otherwise, const Find& find) noexcept {
  Result result = otherwise;
  call([&] { result = find(given(program, "program").function(function)); });
  return result;
}

const std::vector<vm::CacheInfo>& caches_of(const relaxc_program* program, const char* function) {
  const Program& loaded = given(program, "program").program;
  return loaded.caches(function_of(loaded, function).name);
}

constexpr const relaxc_value_info* kNoInfo = nullptr;
const relaxc_value_info* item(const Declarations& declarations, int32_t index, const char* what) {
  const std::vector<relaxc_value_info>& infos = declarations.infos();
  if (index < 0 || index >= std::ssize(infos))
    throw_usage_error("{} {} does not exist: there are {}", what, index, infos.size());
  return &infos[static_cast<size_t>(index)];
}

}  // namespace

}  // namespace relaxc::api

using namespace relaxc::api;

relaxc_program::relaxc_program(relaxc::Program loaded) : program(std::move(loaded)) {
  for (const relaxc::vm::Function& function : program.executable().functions) {
    functions.push_back(std::make_unique<const Function>(function));
    if (function.is_public) names.push_back(function.name.c_str());
  }
}

const relaxc_program::Function& relaxc_program::function(const char* name) const {
  const relaxc::vm::Function* found = &function_of(program, name);
  return *functions[static_cast<size_t>(found - program.executable().functions.data())];
}

const char* relaxc_version(void) { return relaxc::kVersion; }
int32_t relaxc_api_version(void) { return RELAXC_API_VERSION; }

relaxc_status relaxc_load(const char* path, const relaxc_load_options* options, relaxc_program** program) {
  return call([&] {
    given(program, "program") = nullptr;
    *program = load_file(&given(path, "path"), options_of(options, "relaxc_load_options"));
  });
}

relaxc_status relaxc_load_memory(const void* bytes, size_t num_bytes, const relaxc_load_options* options,
                                 relaxc_program** program) {
  return call([&] {
    given(program, "program") = nullptr;
    if (bytes == nullptr && num_bytes > 0) throw_usage_error("bytes is a null pointer");
    const std::span artifact(static_cast<const std::byte*>(bytes), num_bytes);
    *program = new relaxc_program(
        relaxc::Program::load_memory(artifact, load_options(options_of(options, "relaxc_load_options"))));
  });
}

relaxc_program* relaxc_program_retain(relaxc_program* program) {
  if (program != nullptr) program->owners.fetch_add(1, std::memory_order_relaxed);
  return program;
}

void relaxc_program_release(relaxc_program* program) {
  if (program != nullptr && program->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete program;
}

relaxc_status relaxc_program_save(const relaxc_program* program, const char* path) {
  return call([&] {
    std::span<const std::byte> bytes = given(program, "program").program.artifact();
    given(path, "path");
    relaxc::vm::OutputFile file(path, relaxc::vm::FileKind::kExecutable);
    file.write(bytes.data(), bytes.size());
    file.commit();
  });
}

int32_t relaxc_num_functions(const relaxc_program* program) {
  return program ? static_cast<int32_t>(program->names.size()) : 0;
}
const char* relaxc_function_name(const relaxc_program* program, int32_t index) {
  if (index < 0 || index >= relaxc_num_functions(program)) return nullptr;
  return program->names[static_cast<size_t>(index)];
}

int32_t relaxc_num_inputs(const relaxc_program* program, const char* function) {
  return declared(program, function, -1, [](const auto& of) { return static_cast<int32_t>(of.inputs.infos().size()); });
}
int32_t relaxc_num_outputs(const relaxc_program* program, const char* function) {
  return declared(program, function, -1,
                  [](const auto& of) { return static_cast<int32_t>(of.outputs.infos().size()); });
}
const relaxc_value_info* relaxc_input(const relaxc_program* program, const char* function, int32_t index) {
  return declared(program, function, kNoInfo, [&](const auto& of) { return item(of.inputs, index, "input"); });
}
const relaxc_value_info* relaxc_output(const relaxc_program* program, const char* function, int32_t index) {
  return declared(program, function, kNoInfo, [&](const auto& of) { return item(of.outputs, index, "output"); });
}

int32_t relaxc_num_caches(const relaxc_program* program, const char* function) {
  int32_t count = -1;
  call([&] { count = static_cast<int32_t>(caches_of(program, function).size()); });
  return count;
}
relaxc_status relaxc_cache(const relaxc_program* program, const char* function, int32_t index,
                           relaxc_cache_info* info) {
  return call([&] {
    const std::vector<relaxc::vm::CacheInfo>& caches = caches_of(program, function);
    if (index < 0 || index >= std::ssize(caches))
      throw_usage_error("cache {} does not exist: there are {}", index, caches.size());
    const relaxc::vm::CacheInfo& cache = caches[static_cast<size_t>(index)];
    auto place = [](size_t number) { return static_cast<int32_t>(number); };
    const int32_t length = cache.length == cache.input ? -1 : place(cache.length);
    given(info, "info") = {place(cache.input), place(cache.output), length, place(cache.axis)};
  });
}

const char* relaxc_program_note_key(const relaxc_program* program, int32_t index) {
  if (program == nullptr || index < 0) return nullptr;
  const auto& notes = program->program.executable().metadata;
  if (index >= std::ssize(notes)) return nullptr;
  return std::next(notes.begin(), index)->first.c_str();
}
const char* relaxc_program_note(const relaxc_program* program, const char* key) {
  if (program == nullptr || key == nullptr) return nullptr;
  const auto& notes = program->program.executable().metadata;
  auto found = notes.find(key);
  return found == notes.end() ? nullptr : found->second.c_str();
}
