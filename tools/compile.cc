// relaxc compile: to an artifact, or to the text of any level.
#include <fstream>
#include <memory>

#include "codegen/bytecode.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "tir/schedule/draw.h"
#include "tools/tool.h"
#include "vm/disassembler.h"

namespace relaxc::tools {

namespace {

struct CompileOptions {
  std::string model, output, emit;
  CompilerOptions compiler;
};

std::string draw_kernels(const IRModule& module) {
  std::string out;
  for (const auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) out += (out.empty() ? "" : "\n") + draw_loops(name, *program);
  }
  return out;
}

// What the user's schedules did to each program, as a file of schedules that does it again.
std::string traces(IRModule module, CompileSettings settings) {
  std::string out;
  for (ScheduleRule& rule : settings.schedules) {
    rule.apply = [&out, name = rule.name, apply = rule.apply](Schedule& schedule) {
      apply(schedule);
      std::string text = schedule.trace().text();
      out += fmt::format("{}@S.schedule(\"{}\")\ndef {}(sch):\n", out.empty() ? "" : "\n",
                         schedule.module().functions.begin()->first, name);
      if (text.empty()) text = "pass\n";
      for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        out += "    " + text.substr(at, end + 1 - at);
      }
    };
  }
  run_pipeline(std::move(module), settings);
  return out;
}

std::string emit(const CompileOptions& options, const CompileSettings& settings) {
  IRModule module = read_module(options.model, settings);
  if (options.emit == "graph") return print_module(module);
  if (options.emit == "tir" || options.emit == "loops" || options.emit == "trace") {
    CompileSettings kernels = settings;
    if (settings.passes == "default") kernels.passes = "simplify,kernels";
    if (options.emit == "trace") return traces(std::move(module), kernels);
    module = run_pipeline(std::move(module), kernels);
    return options.emit == "tir" ? print_module(module) : draw_kernels(module);
  }
  CompiledModule compiled = compile(std::move(module), settings);
  codegen::CompileOptions llvm{.jobs = 1, .opt_level = settings.opt_level};
  if (options.emit == "llvm") return codegen::to_llvm_ir(compiled.kernels(), compiled.target(), llvm);
  if (options.emit == "asm") return codegen::to_assembly(compiled.kernels(), compiled.target(), llvm);
  return vm::disassemble(compiled.executable());
}

int run(const CompileOptions& options) {
  CompileSettings settings = options.compiler.get(options.model);
  if (!options.emit.empty()) {
    std::string text = emit(options, settings);
    if (options.output.empty()) {
      fmt::print("{}", text);
      return kRight;
    }
    std::ofstream file(options.output, std::ios::binary);
    file << text;
    if (!file) fail({}, "cannot write '{}'", options.output);
    return kRight;
  }
  if (options.output.empty()) throw CLI::ValidationError("give -o FILE.so, or --emit=LEVEL to print");
  CompiledModule compiled = compile_file(options.model, settings);
  compiled.write(options.output);
  fmt::print("{}: {} kernels for {}\n", options.output, compiled.kernels().size(), compiled.target().cpu);
  return kRight;
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("compile", "compile a model (.onnx) or module (.py) to an artifact");
  command->add_option("model", options->model, "the file")->required();
  command->add_option("-o,--output", options->output, "the artifact (.so), or the text file with --emit");
  command->add_option("--emit", options->emit, "print a level instead")
      ->check(CLI::IsMember({"graph", "tir", "loops", "trace", "llvm", "asm", "bytecode"}));
  command->add_option("--dim", options->compiler.fixed_dims,
                      "NAME=VALUE, compile for this value of a symbolic dim only");
  options->compiler.add_to(*command);
  command->footer("Example: relaxc compile model.onnx -o model.so\n         relaxc compile model.onnx --emit=tir");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
