// relaxc compare: two profiles side by side, as a table or a page.
#include <memory>

#include "tools/profile_page.h"
#include "tools/profile_pair.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct CompareCommand {
  std::string a, b, html;
};

int run(const CompareCommand& command) {
  check_output(command.html, command.a);
  check_output(command.html, command.b);
  const ProfilePair pair = pair_of(read_profile(command.a), read_profile(command.b));
  if (command.html != "-") print_message("{}", text_of(pair));
  if (!command.html.empty())
    write_text(command.html, comparison_page(fmt::format("{} and {}", command.a, command.b), report_of(pair).json()));
  return kRight;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareCommand>();
  CLI::App* command = app.add_subcommand("compare", "compare two profiles, kernel by kernel");
  command->add_option("a", options->a, "figures that relaxc bench --profile --json wrote")->required();
  command->add_option("b", options->b, "the figures that are compared with them")->required();
  command->add_option("--html", options->html, "write a page there, too (-: to standard output, alone)");
  command->footer("Example: relaxc compare before.json after.json --html difference.html");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
