// relaxc view: the graph of a model, module or artifact as a page for a browser.
#include "tools/view.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "support/library_file.h"
#include "support/lists.h"
#include "tools/inspect_artifact.h"
#include "tools/page.h"
#include "tools/report.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct ViewCommand {
  std::string file, output;
  CompilerOptions compiler;
};

const char* name_of(ViewNode::Kind kind) {
  switch (kind) {
    case ViewNode::Kind::kInput:
      return "input";
    case ViewNode::Kind::kResult:
      return "result";
    case ViewNode::Kind::kKernel:
      return "kernel";
    case ViewNode::Kind::kView:
      return "view";
    case ViewNode::Kind::kRuntime:
      return "runtime";
  }
  return "";
}

ReportValue report_of_operator(const ViewOperator& op) {
  return Report{{"name", op.name}, {"type", op.type}, {"place", op.place}, {"attributes", op.attributes}};
}
ReportValue report_of_weight(const ViewWeight& weight) {
  return Report{{"type", weight.type}, {"name", weight.name}, {"bytes", weight.bytes}};
}
ReportValue report_of_node(const ViewNode& node) {
  return Report{{"kind", name_of(node.kind)},
                {"name", node.name},
                {"type", node.type},
                {"place", node.place},
                {"operators", map_each(node.operators, report_of_operator)},
                {"weights", map_each(node.weights, report_of_weight)},
                {"inputs", map_each(node.inputs, [](size_t input) { return ReportValue(input); })}};
}
ReportValue report_of_function(const ViewFunction& function) {
  return Report{{"name", function.name}, {"nodes", map_each(function.nodes, report_of_node)}};
}

// Returns {"fused_conv2d": {"TensorIR": "...", "assembly": "..."}}.
Report texts_of(const View& view) {
  Report texts;
  for (const auto& [name, kernel] : view.kernels) {
    Report of_kernel;
    for (const ViewText& text : kernel) of_kernel.set(text.title, text.text);
    texts.set(name, std::move(of_kernel));
  }
  return texts;
}

int run(const ViewCommand& command) {
  const std::filesystem::path path = split_text_path(command.file).file;
  std::string output = command.output;
  if (output.empty()) output = path.filename().replace_extension(".html").string();
  check_output(output, path.string());
  const CompileSettings settings = command.compiler.get(command.file);
  if (is_library_file(command.file)) check_settings_of_artifact(command.file, settings);
  const View view =
      is_library_file(command.file) ? view_of_artifact(command.file) : view_of_module(command.file, settings);
  write_text(output, page_of(view, command.file));
  if (output != "-") print_message("{}: open it in a browser\n", output);
  for (const std::string& note : view.notes) print_note("note: {}\n", printable(note, std::string::npos));
  return kRight;
}

}  // namespace

std::string page_of(const View& view, const std::string& file) {
  const Report data{{"file", file},
                    {"kind", view.kind},
                    {"target", view.target},
                    {"functions", map_each(view.functions, report_of_function)},
                    {"notes", map_each(view.notes, [](const std::string& note) { return ReportValue(note); })}};
  return html_of({.title = "graph of " + file,
                  .scripts = {"layout.js", "graph.js", "outline.js", "details.js", "view.js"},
                  .json = data.json(),
                  .texts = texts_of(view).json()});
}

void add_view(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ViewCommand>();
  CLI::App* command = app.add_subcommand("view", "draw the graph and its kernels as a page for a browser");
  command->add_option("file", options->file, "the file (.onnx, .py or .so)")->required();
  command->add_option("-o,--output", options->output,
                      "the page; by default the file's name with .html, in the current folder (-: standard output)");
  options->compiler.add_dims(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc view model.onnx -o model.html");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
