#include "codegen/compile.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/artifact_cache.h"
#include "codegen/bind_values.h"
#include "codegen/bytecode.h"
#include "codegen/interpret.h"
#include "codegen/open_types.h"
#include "codegen/options.h"
#include "codegen/provenance.h"
#include "codegen/shipped.h"
#include "codegen/target.h"
#include "codegen/text_file.h"
#include "frontend/onnx/import.h"
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "passes/graph_decisions.h"
#include "passes/kernel_rules.h"
#include "passes/program_warnings.h"
#include "passes/tables.h"
#include "support/file_kind.h"
#include "support/fork_guard.h"
#include "support/guard.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "tir/analysis/races.h"
#include "tir/analysis/reductions.h"
#include "tir/lower/lower.h"
#include "tir/schedule/script.h"
#include "vm/artifact.h"
#include "vm/cpu.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/missing.h"

namespace relaxc {

namespace {

// Constant folding compiles and runs a small program of the constants through the same pipeline, without folding.
std::vector<Tensor> evaluate_constants(const IRModule& module, const CompileSettings& settings) {
  CompileSettings inner = settings;
  inner.target = "host";
  inner.passes = "kernels,lower";
  inner.opt_level = 1;
  inner.runner = settings.runner.verification_only();
  inner.schedules.clear();
  inner.function.clear();
  if (settings.tables) inner.tables = settings.tables->operators_only();
  inner.kernels = nullptr;
  inner.claimed = nullptr;
  inner.decided = nullptr;
  inner.progress = nullptr;
  inner.scheduled = nullptr;
  inner.check_bounds = settings.check_bounds || settings.interpret;
  inner.interpret.reset();
  Session session(compile(module, inner).load(), {.threads = settings.jobs});
  return with_compile_errors({}, [&] { return session.run({}); });  // an index may be out of range
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || file.bad()) fail({}, "cannot read '{}': {}", path, std::strerror(errno));
  return std::string(without_byte_order_mark(text.str()));
}

const OpTable& op_table() { return builtin_tables().ops(); }

bool has_lowering(const OpRow& row) {
  return row.legalize || row.decompose || codegen::is_lowered_to_bytecode(row.name);
}

bool is_text_path(const std::string& path) {
  return path.ends_with(".py") || path.ends_with(".tvm") || path.ends_with(".test") || path.ends_with(".txt");
}

TextPath split_text_path(const std::string& path) {
  size_t colons = path.rfind("::");
  const std::string file = path.substr(0, colons);
  if (colons == std::string::npos || (!is_text_path(file) && !is_text_file(file))) return {path, ""};
  return {path.substr(0, colons), path.substr(colons + 2)};
}

// Returns the module of the text that is read: the one that the path names, or the choice among several.
static std::string module_of(const std::string& text, const std::string& file, const std::string& named,
                             Diagnostics* diagnostics) {
  std::vector<std::string> modules = named.empty() ? several_modules(text) : std::vector<std::string>();
  if (modules.empty()) return named;
  const std::string chosen = chosen_module(text, modules);
  if (!diagnostics) return chosen;
  auto origin = std::make_shared<Origin>();
  origin->file = file;
  diagnostics->warning({origin}, "the text has the modules {}; '{}' is compiled", joined(modules), chosen)
      .notes.push_back(
          fmt::format("{}::{} names another", file, modules.front() == chosen ? modules[1] : modules.front()));
  return chosen;
}

// Returns the C functions that the module calls, from the graph or from tensor programs.
static std::set<std::string> called_functions(const IRModule& module) {
  std::set<std::string> result;
  for (const auto& [_, function] : module.functions) {
    walk(
        function, [&](const ExternFunc& callee) { result.insert(callee.symbol); },
        [&](const StringImm& name) { result.insert(name.value); });
  }
  return result;
}

// A text has no nodes of ONNX; a kernel of a library may be called by its name.
static void report_kernels_for_nodes(const IRModule& module, const CompileSettings& settings) {
  if (!settings.kernels || !settings.report) return;
  const std::set<std::string> called = called_functions(module);
  for (const KernelRule& rule : *settings.kernels) {
    if (rule.pattern || !rule.kernel || called.contains(rule.kernel->symbol)) continue;
    settings.report(note_at(rule.span, fmt::format("kernel '{}' is used nowhere: it is for nodes of an ONNX model, and "
                                                   "this is a text",
                                                   rule.name)));
  }
}

// Warns of what somebody wrote and may not mean.
static void add_warnings(const IRModule& module, Diagnostics& diagnostics) {
  for (const Diagnostic& warning : unread_annotations(module)) diagnostics.add(warning);
  for (const auto& [_, program] : programs_of(module)) {
    for (const Diagnostic& warning : racing_loops(program)) diagnostics.add(warning);
    for (const Diagnostic& found : wrong_reductions(program, Results::kAllocated)) diagnostics.add(found);
  }
}

// Warnings about programs are for modules without errors, which are reported later.
static void add_program_warnings(const IRModule& module, const OpTable& ops, Diagnostics& diagnostics) {
  Diagnostics problems;
  verify(module, ops, problems);
  if (!problems.has_errors()) verify_ranges(module, Ranges::kAxes, problems);
  if (problems.has_errors()) return;
  for (const Diagnostic& warning : program_warnings(module)) diagnostics.add(warning);
}

static std::string text_of(const std::string& file, const CompileSettings& settings) {
  const std::string text = settings.contents ? std::string(reinterpret_cast<const char*>(settings.contents->data()),
                                                           settings.contents->size())
                                             : read_text(file);
  expect_text(file, text, "a module as text (the name of a model ends in .onnx, that of an artifact in .so)");
  return text;
}

IRModule read_module(const std::string& path, const CompileSettings& settings, Diagnostics& diagnostics,
                     vm::MappedFiles* files) {
  const Tables& tables = tables_of(settings);
  auto read = [&] {
    const auto [file, name] = split_text_path(path);
    if (is_text_file(file, settings)) {
      const std::string text = text_of(file, settings);
      IRModule module = parse_module(text, file, tables.ops(), diagnostics, module_of(text, file, name, &diagnostics));
      report_kernels_for_nodes(module, settings);
      bool binds = !settings.dims.empty() && !diagnostics.has_errors();
      return binds ? with_dims_bound(std::move(module), settings.dims) : module;
    }
    ImportOptions options;
    options.dims = settings.dims;
    options.types = settings.types;
    options.strict = settings.strict;
    options.warn = [&](const Diagnostic& warning) { diagnostics.add(warning); };
    options.files = files;
    options.converters = tables.converters();
    if (settings.kernels) options.kernels = node_kernels(*settings.kernels);
    for (const KernelRule& rule : settings.kernels ? *settings.kernels : std::vector<KernelRule>()) {
      if (rule.pattern && !rule.node.empty()) options.asked_nodes.emplace_back(rule.node, rule.span);
    }
    options.claimed = settings.claimed;
    options.report = settings.report;
    options.progress = settings.progress;
    options.failed = settings.unconverted;
    return settings.contents ? import_onnx_bytes(*settings.contents, path, tables.ops(), options)
                             : import_onnx(path, tables.ops(), options);
  };
  IRModule module = guarded([&] { return fmt::format("reading '{}'", path); }, read);
  for (const auto& [name, _] : settings.dim_ranges) {
    if (settings.dims.contains(name)) fail_usage({}, "dim '{}' has a size and a range; leave one of them out", name);
  }
  if (!settings.dim_ranges.empty() && !diagnostics.has_errors())
    module = with_dim_ranges(std::move(module), settings.dim_ranges);
  add_warnings(module, diagnostics);
  if (is_text_path(split_text_path(path).file) && !diagnostics.has_errors())
    add_program_warnings(module, tables.ops(), diagnostics);
  return module;
}

IRModule read_module(const std::string& path, const CompileSettings& settings, vm::MappedFiles* files) {
  Diagnostics diagnostics;
  IRModule module = read_module(path, settings, diagnostics, files);
  diagnostics.throw_if_errors();
  for (const Diagnostic& warning : diagnostics.all()) {
    if (settings.warn) settings.warn(warning);
  }
  return module;
}

IRModule read_scheduled_module(const std::string& path, const CompileSettings& settings, vm::MappedFiles* files) {
  IRModule module = read_module(path, settings, files);
  if (module.functions.empty())
    fail({}, "'{}' has no function: expected @R.function, @T.prim_func, or a class of them with @I.ir_module", path);
  if (!settings.params.empty()) module = with_params_bound(std::move(module), settings.function, settings.params);
  if (settings.caches.is_given()) module = with_growing_caches(std::move(module), settings.function, settings.caches);
  const auto [file, name] = split_text_path(path);
  if (is_text_file(file, settings)) {
    Diagnostics warnings;
    check_params(module, settings.types);
    std::map<std::string, Type> types = settings.types;
    types.insert(settings.input_types.begin(), settings.input_types.end());
    module = with_open_types(std::move(module), types, tables_of(settings).ops(), warnings);
    for (const Diagnostic& warning : warnings.all()) {
      if (settings.warn) settings.warn(warning);
    }
  }
  std::optional<ScheduleRule> steps;
  if (is_text_file(file, settings)) {
    const std::string text = text_of(file, settings);
    steps = read_module_schedule(text, file, module_of(text, file, name, nullptr));
  }
  if (!steps) return module;
  Schedule schedule(std::move(module));
  Decisions none("", {});
  steps->apply(schedule, Target(), none);
  if (settings.scheduled) settings.scheduled(*steps, schedule, none);
  return schedule.module();
}

PassContext pass_context(const CompileSettings& settings) {
  const Tables& tables = tables_of(settings);
  PassContext context(tables.ops(), codegen::parse_target(settings.target), settings);
  context.evaluate = [settings](const IRModule& module) { return evaluate_constants(module, settings); };
  check_rules(settings.schedules, tables.rules().rules);
  return context;
}

std::vector<const Pass*> passes_of(const CompileSettings& settings, const Target& target) {
  return parse_passes(settings.passes, settings, codegen::backend_of(target).pipeline);
}

IRModule run_pipeline(IRModule module, const CompileSettings& settings) {
  const ForkGuard guard;
  PassContext context = pass_context(settings);
  return run_passes(std::move(module), passes_of(settings, context.target), context, settings.runner);
}

// TVM's attribute Codegen says that a backend outside of the compiler makes the function's code. One that is loaded
// takes of it what it takes of any function.
std::string why_no_backend(const std::string& name, const Function& function, const CompileSettings& settings) {
  if (!function.attrs.has(attr_names::kCodegen)) return "";
  std::vector<std::string> names = map_each(tables_of(settings).external_compilers(), &ExternalCompiler::name);
  std::string backend = function.attrs.get_string(attr_names::kCodegen, "");
  if (std::ranges::count(names, backend)) return "";
  return fmt::format(
      "a function of '{}' is for the backend '{}', and {}; give it with --backend FILE.so; without the attribute "
      "Codegen it is compiled as other functions are",
      name, backend, names.empty() ? "there are no backends" : "there are only " + joined(names));
}

static void check_backends(const IRModule& module, const CompileSettings& settings) {
  for (const auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<Function>& part) {
      const std::string why = why_no_backend(name, *part, settings);
      if (!why.empty()) fail_unsupported(part.span() ? part.span() : function.span(), "{}", why);
    });
  }
}

CompiledModule compile(IRModule module, const CompileSettings& settings) {
  const ForkGuard guard;
  check_backends(module, settings);
  CompiledModule result;
  PassContext context = pass_context(settings);
  result.target_ = context.target;
  // Some passes always run. Without check_dims a run is not safe. Without decompose some operators have no lowering.
  // Without spread_tuples legalize refuses tuple values. Without lambda_lift local functions have no bytecode. Without
  // wrap_programs programs by themselves have no entry. inline_calls comes first, because it changes the params of
  // programs, and after wrap_programs, which calls programs for the scalars that they return. gradient adds functions
  // that may be the ones to run.
  std::vector<const Pass*> passes = passes_of(settings, context.target);
  const Tables& tables = tables_of(settings);
  for (std::string_view name : {"check_dims", "decompose_rest", "decompose", "spread_tuples", "lambda_lift",
                                "inline_calls", "wrap_programs", "inline_calls", "gradient"}) {
    const Pass* needed = tables.find_pass(name);
    bool is_missing = std::ranges::find(passes, needed) == passes.end();
    if (is_missing || name == "inline_calls") passes.insert(passes.begin(), needed);
  }
  result.lowered_ = run_passes(std::move(module), passes, context, settings.runner);
  result.interpret_ = settings.interpret;
  if (settings.interpret) {
    context.progress = nullptr;
    const Pass* least[] = {tables.find_pass("legalize"), tables.find_pass("destination_passing"),
                           tables.find_pass("place_parts")};
    result.lowered_ = run_passes(std::move(result.lowered_), least, context, settings.runner.verification_only());
  }
  guarded([] { return "code generation"; }, [&] { result.generate(settings); });
  return result;
}

void CompiledModule::generate(const CompileSettings& settings) {
  executable_ = codegen::lower_to_bytecode(lowered_);
  executable_.metadata.merge(codegen::provenance_of(settings));
  const codegen::KernelMap kernels = this->kernels();
  // The loader compares these with the CPU it runs on (vm/cpu.h).
  if (!settings.interpret) executable_.metadata[vm::kArchitectureKey] = codegen::architecture(target_);
  if (!settings.interpret && !kernels.empty()) {
    executable_.metadata[vm::kCpuKey] = target_.cpu;
    executable_.metadata[vm::kCpuFeaturesKey] = joined(codegen::loadable_features(target_), ",");
  }
  if (!settings.interpret) objects_ = codegen::backend_of(target_).compile(kernels, target_, settings);
  std::set<std::string> called = codegen::called_functions(kernels, target_);
  codegen::link_functions(objects_, called, settings.linked);
  for (const vm::KernelInfo& kernel : executable_.kernels) {
    if (kernel.source == vm::KernelSource::kRegistry) called.insert(kernel.symbol);
  }
  codegen::check_linked(settings.linked, called, target_, settings.host_symbols);
  const std::set<std::string> linked = codegen::functions_of(settings.linked);
  note_libraries(settings, linked);
  auto note = [&](const char* key, const std::vector<std::string>& names) {
    if (!names.empty()) executable_.metadata[key] = joined(names, "\n");
  };
  note(vm::kCalledFunctionsKey, objects_.called);
  if (settings.interpret) return;
  for (const vm::KernelInfo& kernel : executable_.kernels) {
    bool is_linked = kernel.source == vm::KernelSource::kRegistry && linked.contains(kernel.symbol);
    if (is_linked) objects_.linked_kernels.push_back(kernel.symbol);
  }
  note(vm::kLinkedKernelsKey, objects_.linked_kernels);
}

void CompiledModule::note_libraries(const CompileSettings& settings, const std::set<std::string>& linked) {
  vm::UserLibraries libraries = settings.libraries;
  std::ranges::move(codegen::shipped_libraries(executable_, libraries), std::back_inserter(libraries));
  vm::check_names(libraries);
  auto is_called = [&](const relaxc_kernel_row& row) {
    if (linked.contains(row.name)) return false;
    return find_item(executable_.kernels, std::string_view(row.name), &vm::KernelInfo::symbol) ||
           std::ranges::count(executable_.builtins, row.name) > 0;
  };
  auto has_called = [&](const std::string& path) {
    if (objects_.called.empty()) return false;
    const std::set<std::string> names = codegen::exported_functions(path);
    return std::ranges::any_of(objects_.called, [&](const std::string& name) { return names.contains(name); });
  };
  std::vector<std::string> paths;
  for (const auto& library : libraries) {
    if (std::ranges::none_of(library->rows(), is_called) && !has_called(library->path())) continue;
    libraries_.push_back(library);
    paths.push_back(library->path());
  }
  for (const std::string& path : tables_of(settings).libraries()) {
    if (!has_called(path)) continue;
    other_libraries_.push_back(path);
    paths.push_back(path);
  }
  auto place = [](const std::string& path) { return std::filesystem::absolute(path).string(); };
  if (!paths.empty()) executable_.metadata[vm::kNeededLibrariesKey] = joined(paths, place, "\n");
}

CompiledModule compile_file(const std::string& path, const CompileSettings& settings) {
  vm::MappedFiles files;
  IRModule module = read_scheduled_module(path, settings, &files);
  CompiledModule result = compile(std::move(module), settings);
  result.sources_ = std::move(files);
  result.executable_.metadata.merge(codegen::provenance_of_model(path, settings));
  check_unchanged(result.sources_);
  return result;
}

// Reports kernels in C that nobody gives at the places where a text declares or calls them; the loader, which would
// report them otherwise, knows no places.
static void check_declared_kernels(const IRModule& module, const vm::Executable& executable,
                                   const std::vector<std::string>& linked, const vm::Registry& registry) {
  Diagnostics diagnostics;
  std::set<std::string> seen;
  for (const auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<ExternFunc>& declared) {
      const std::string& symbol = declared->symbol;
      const bool is_kernel = find_item(executable.kernels, symbol, &vm::KernelInfo::symbol) != nullptr;
      if (!is_kernel || !declared.span() || std::ranges::count(linked, symbol) > 0) return;
      if (registry.find_kernel(symbol) || registry.find_tensor_kernel(symbol)) return;
      if (seen.insert(symbol).second) vm::report_missing_kernel(diagnostics, declared.span(), symbol);
    });
  }
  diagnostics.throw_if_errors();
}

// Reports the C functions that nobody has at the first call of each in a tensor program.
static void check_called_functions(const codegen::KernelMap& kernels, const std::vector<std::string>& called,
                                   const vm::UserLibraries& libraries) {
  Diagnostics diagnostics;
  std::set<std::string> open;
  for (const std::string& name : called) {
    const bool is_known = dlsym(RTLD_DEFAULT, name.c_str()) != nullptr ||
                          std::ranges::any_of(libraries, [&](const auto& it) { return it->find_symbol(name); });
    if (!is_known) open.insert(name);
  }
  for (const auto& [name, program] : kernels) {
    walk(program->body, [&](const Ref<Call>& call) {
      const bool is_extern = op_name(call) == ops::kCallExtern || op_name(call) == ops::kCallPureExtern;
      const StringImm* symbol = is_extern ? call->args.at(0).as<StringImm>() : nullptr;
      if (symbol && open.erase(symbol->value) > 0)
        vm::report_missing_function(diagnostics, call.span(), symbol->value,
                                    fmt::format(", which tensor program '{}' calls", name));
    });
  }
  diagnostics.throw_if_errors();
}

Program CompiledModule::load(LoadOptions options) const {
  const ForkGuard guard;
  options.files.insert(options.files.end(), sources_.begin(), sources_.end());
  options.libraries.insert(options.libraries.end(), libraries_.begin(), libraries_.end());
  for (const std::string& path : other_libraries_)
    options.libraries.push_back(vm::UserLibrary::open(path, vm::UserLibrary::Table::kOptional));
  const vm::UserLibraries libraries = options.libraries;
  vm::add_libraries(libraries, options.registry);
  auto program = [&](const auto& kernels) {
    check_declared_kernels(lowered_, executable_, objects_.linked_kernels, options.registry);
    auto find = [kernels](const std::string& symbol) { return kernels->find(symbol); };
    return Program::from(executable_, find, kernels, std::move(options));
  };
  if (interpret_) {
    codegen::LinkedFunctions linked = codegen::load_linked(lowered_, objects_.linked, target_);
    linked.libraries = libraries;
    linked.add_to(options.registry);
    auto kernels = std::make_shared<codegen::InterpretedKernels>(lowered_, *interpret_, std::move(linked));
    options.watcher = kernels;
    return program(kernels);
  }
  // This comes before LLVM sees objects of another architecture.
  if (std::string problem = vm::why_host_cannot_run(executable_); !problem.empty()) fail({}, "{}", problem);
  std::shared_ptr<const vm::KernelLibrary> code;
  try {
    code = codegen::load_connected(objects_, libraries);
  } catch (const CompileError&) {
    check_called_functions(kernels(), objects_.called, libraries);  // knows their places
    throw;
  }
  return program(code);
}

void CompiledModule::write(const std::string& path) const {
  const ForkGuard guard;
  if (interpret_) fail({}, "an interpreted module has no machine code to write to '{}'", path);
  auto link_and_write = [&] {
    std::vector<char> elf = codegen::backend_of(target_).link(objects_);
    vm::write_artifact(path, std::as_bytes(std::span(elf)), executable_, sources_);
  };
  guarded([&] { return fmt::format("writing '{}'", path); }, link_and_write);
}

void check_settings_of_artifact(const std::string& path, const CompileSettings& settings) {
  const CompileSettings defaults;
  const bool wants_caches = settings.caches.is_given() && !settings.caches.may_be_missing;
  std::vector<std::pair<const char*, bool>> compilers = {
      {"--link", !settings.linked.empty()},
      {"--host-symbols", !settings.host_symbols.empty()},
      {"--bind", !settings.params.empty()},
      {"--dim-range", !settings.dim_ranges.empty()},
      {"--type", !settings.types.empty()},
      {"--in-place", wants_caches},
      {"--jobs", settings.jobs != defaults.jobs},
      {"--stop-after", !settings.runner.stop_after.empty()},
      {"--bisect-limit", settings.runner.bisect_limit != defaults.runner.bisect_limit},
      {"--print-after", !settings.runner.print_after.empty()},
      {"--dump-dir", !settings.runner.dump_dir.empty()},
      {"--time-passes", settings.runner.time_passes},
      {"--verify-each", settings.runner.verify_each != defaults.runner.verify_each},
  };
  for (const CompileOption& row : compile_options())
    compilers.emplace_back(row.flag, row.is_given(settings) && row.flag != std::string_view("--function"));
  for (const auto& [flag, is_given] : compilers) {
    if (is_given) fail_usage({}, "'{}' is compiled already; give {} when it is compiled (relaxc compile)", path, flag);
  }
}

Program load_program(const std::string& path, const CompileSettings& settings, LoadOptions options) {
  if (is_library_file(path)) {
    check_settings_of_artifact(path, settings);
    options.libraries.insert(options.libraries.end(), settings.libraries.begin(), settings.libraries.end());
    bool has_rules = settings.kernels || !settings.schedules.empty();
    if (has_rules && settings.report)
      settings.report(
          fmt::format("note: '{}' is compiled already: --kernels and --schedules of rules change nothing", path));
    return Program::load(path, std::move(options));
  }
  return compile_file(path, settings).load(std::move(options));
}

}  // namespace relaxc
