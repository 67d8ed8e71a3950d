#include "vm/program.h"

#include <algorithm>
#include <cstring>

#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "support/guard.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "vm/artifact.h"
#include "vm/error.h"
#include "vm/interpreter.h"
#include "vm/missing.h"
#include "vm/shipped_libraries.h"
#include "vm/user_library.h"
#include "vm/verifier.h"

namespace relaxc {

namespace {

// Returns a builtin or a function of the host; empty where there is none.
vm::BuiltinFunction function_for(const std::string& name, const vm::Registry& registry, const Span& span) {
  if (const vm::Builtin* builtin = vm::find_builtin(name)) return std::cref(*builtin);
  if (const vm::BuiltinFunction* function = registry.find_function(name)) return *function;
  return vm::open_builtin(name, span);
}

// Collects all names that are missing before it throws.
std::shared_ptr<vm::Image> link(vm::Executable executable, const Program::KernelResolver& resolver,
                                LoadOptions& options, std::shared_ptr<const void> keep_alive, vm::MappedFiles files,
                                const Span& span) {
  auto image = std::make_shared<vm::Image>();
  Diagnostics diagnostics;
  const std::string linked = copy_value(executable.metadata, vm::kLinkedKernelsKey).value_or("");
  std::vector<std::string_view> linked_kernels = parts_of(linked, '\n');
  for (const vm::KernelInfo& kernel : executable.kernels) {
    bool is_generated = kernel.source == vm::KernelSource::kArtifact;
    vm::Kernel function;
    if (!is_generated) function = options.registry.find_kernel(kernel.symbol);
    const vm::TensorKernel* on_tensors =
        is_generated || function ? nullptr : options.registry.find_tensor_kernel(kernel.symbol);
    bool is_inside = is_generated || std::ranges::count(linked_kernels, kernel.symbol);
    if (is_inside && !function && !on_tensors && resolver) function = resolver(kernel.symbol);
    image->on_tensors.push_back(on_tensors ? *on_tensors : nullptr);
    const bool is_missing = !function && !on_tensors;
    if (is_missing && is_generated) {
      diagnostics.error(span, "kernel '{}' is missing; {}", printable(kernel.symbol), vm::kRecompile);
    } else if (is_missing) {
      vm::report_missing_kernel(diagnostics, span, kernel.symbol);
    }
    image->kernels.push_back(std::move(function));
  }
  for (const std::string& name : executable.builtins) {
    vm::BuiltinFunction function = function_for(name, options.registry, span);
    if (!function)
      diagnostics.error(span,
                        "function '{}' is missing; give the library that has it (--kernels LIBRARY.so), or add it to "
                        "the registry of a host in C++ (Registry::add_function)",
                        printable(name));
    image->builtins.push_back(std::move(function));
  }
  diagnostics.throw_if_errors();
  image->files = std::move(files);
  image->libraries = std::move(options.libraries);
  image->executable = std::move(executable);
  for (const vm::Function& function : image->executable.functions) {
    image->caches.push_back(vm::caches_of(image->executable, function));
    const std::string* other = find_value(image->executable.metadata, std::string(vm::kOtherwiseKey) + function.name);
    image->otherwise.push_back(other ? image->executable.find_function(*other) : nullptr);
  }
  image->keep_alive = std::move(keep_alive);
  image->watcher = options.watcher;
  return image;
}

// Names the functions of the executable and those that it had to leave out.
std::string known_functions(const vm::Executable& executable) {
  auto quoted = [](const vm::Function& function) { return formatted("'{}'", printable(function.name)); };
  std::string known = joined(executable.functions, quoted, " ");
  std::string text = formatted("there are {}", known.empty() ? "none" : known);
  for (const auto& [key, reason] : executable.metadata) {
    if (key.starts_with(vm::kRefusedKey))
      text += formatted("; '{}' cannot be run: {}", printable(key.substr(vm::kRefusedKey.size())), printable(reason));
  }
  return text;
}

const vm::Function& find_function(const vm::Executable& executable, std::string_view name) {
  if (const vm::Function* function = name.empty() ? executable.default_function() : executable.find_function(name))
    return *function;
  std::string known = known_functions(executable);
  if (!name.empty()) throw_usage_error("function '{}' does not exist, {}", name, known);
  throw_usage_error("name the function to run: {} is 'main' or the only public one, {}",
                    executable.functions.empty() ? "none" : "not one", known);
}

}  // namespace

void name_kinds_of_files() { vm::name_content = recognized_content; }

Program Program::load(const std::string& path, LoadOptions options) {
  const Span span = span_of_file(options.name.empty() ? path : options.name);
  vm::Artifact artifact = guarded([&] { return formatted("loading '{}'", span.origin->file); },
                                  [&] { return vm::load_artifact(path, {options.verify_hash, options.name}); });
  std::shared_ptr<const vm::KernelLibrary> library = artifact.library;
  const std::string* needed = find_value(artifact.executable.metadata, vm::kNeededLibrariesKey);
  if (needed) vm::open_needed_libraries(*needed, path, span, options.libraries);
  vm::add_libraries(options.libraries, options.registry);
  const std::string* called = find_value(artifact.executable.metadata, vm::kCalledFunctionsKey);
  Diagnostics diagnostics;
  if (called && library) vm::connect_functions(*called, *library, options.libraries, span, diagnostics);
  diagnostics.throw_if_errors();
  auto resolver = [&](const std::string& symbol) { return library ? library->find(symbol) : nullptr; };
  auto image = link(std::move(artifact.executable), resolver, options, library, {artifact.file}, span);
  image->weights = artifact.weights;
  image->artifact = artifact.file;
  return Program(std::move(image));
}

Program Program::load_memory(std::span<const std::byte> artifact, LoadOptions options) {
  const vm::MemoryFile file(artifact);
  if (options.name.empty()) options.name = "the artifact in the caller's memory";
  return load(file.path(), std::move(options));
}

Program Program::from(vm::Executable executable, const KernelResolver& resolver, std::shared_ptr<const void> keep_alive,
                      LoadOptions options) {
  Diagnostics diagnostics;
  for (const std::string& message : vm::verify(executable)) diagnostics.error(span_of_file("bytecode"), "{}", message);
  diagnostics.throw_if_errors();
  return Program(link(std::move(executable), resolver, options, std::move(keep_alive), options.files, {}));
}

const vm::Executable& Program::executable() const { return image_->executable; }

std::span<const std::byte> Program::artifact() const {
  if (!image_->artifact) return {};
  image_->artifact->check_unchanged();
  return image_->artifact->bytes();
}

void Program::check_weights() const {
  if (image_->weights) image_->weights->run();
}

std::vector<std::string> Program::functions() const {
  return map_each(image_->executable.functions, &vm::Function::name);
}

const vm::Function& Program::function(std::string_view name) const { return find_function(image_->executable, name); }

const std::vector<vm::ValueInfo>& Program::inputs(std::string_view function) const {
  return this->function(function).inputs;
}

const std::vector<vm::ValueInfo>& Program::outputs(std::string_view function) const {
  return this->function(function).outputs;
}

const std::vector<vm::CacheInfo>& Program::caches(std::string_view function) const {
  const std::vector<vm::Function>& functions = image_->executable.functions;
  return image_->caches[static_cast<size_t>(&this->function(function) - functions.data())];
}

}  // namespace relaxc
