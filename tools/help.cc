#include "tools/help.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "support/check.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "vm/error.h"

namespace relaxc::tools {

namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  return map_each(app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); }),
                  [](const CLI::App* command) { return command->get_name(); });
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

// Returns "relaxc cache clear".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent ? full_name(*parent) + " " + app.get_name() : app.get_name();
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> known = command_names(app);
  return fmt::format("error: {} has no command '{}'{}\n  note: {} --help {}{}\n", full_name(app), word,
                     suggestion(word, known), full_name(app), known.empty() ? "says more" : "lists the commands",
                     app.get_name() == "relaxc-run" ? "; relaxc, which has the compiler, has more" : "");
}

std::string unknown_flag(const CLI::App& app, const std::string& text) {
  const std::string flag = text.substr(0, text.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options(nullptr)) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  if (std::ranges::count(known, flag) > 0)  // it was given before the command
    return fmt::format("error: {} has no flag '{}'; it is one of {}: give it behind the command\n",
                       full_name(*app.get_parent()), flag, full_name(app));
  return fmt::format("error: {} has no flag '{}'{}\n  note: {} --help lists its flags\n", full_name(app), flag,
                     flag.starts_with("--") ? suggestion(flag, known) : "", full_name(app));
}

// Returns the command that was given last, the innermost one.
const CLI::App& given_command(const CLI::App& app) {
  const std::vector<const CLI::App*> given =
      app.get_subcommands([](const CLI::App* command) { return command->parsed(); });
  return given.empty() ? app : given_command(*given.front());
}

class HelpLayout final : public CLI::Formatter {
  std::string make_positionals(const CLI::App* app) const override {
    const std::string section = CLI::Formatter::make_positionals(app);  // an empty line, a heading, and a line for each
    return section.empty() ? section : section.substr(section.find('\n', 1) + 1);
  }
};

}  // namespace

void lay_out_help(CLI::App& app) { app.formatter(std::make_shared<HelpLayout>()); }

void add_help(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "describe a command and its flags");
  command->add_option("command", *words, "the command, such as bench; without one all are listed")
      ->check(such_as(command_names(app)));
  command->footer("Example: relaxc help bench");
  command->callback([words, &app] {
    const CLI::App* described = &app;
    for (const std::string& word : *words) {
      const auto found = described->get_subcommands([&](const CLI::App* other) { return other->get_name() == word; });
      if (found.empty()) throw CLI::ExtrasError(unknown_command(*described, word), CLI::ExitCodes::ExtrasError);
      described = found.front();
    }
    // Not App::help(), which describes the command that was given: this one.
    print_text(described->get_formatter()->make_help(described, full_name(*described), CLI::AppFormatMode::Normal));
  });
}

// Returns what CLI11 says of the number of values in whole words.
static std::string in_words(const std::string& what) {
  const std::string flag = what.substr(0, what.find(": "));
  if (what.ends_with(" missing")) return flag + " needs a value";  // "--output: 1 required TEXT missing"
  if (what.find(": At Most 1 required") != std::string::npos) return flag + " is given more than once";
  return what;
}

// Returns what is wrong with the command line, and the nearest command or flag that it may mean.
static std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = given_command(app);
  const std::vector<std::string> extras = app.remaining(true);
  const std::string what = error.what();
  auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  // CLI11 first reports an argument that is missing, which may be what an unknown flag was meant to be.
  const bool has_unknown_flag =
      std::ranges::any_of(extras, [](const std::string& text) { return text.starts_with('-'); });
  const bool is_about_extras =
      is(CLI::ExitCodes::ExtrasError) || (is(CLI::ExitCodes::RequiredError) && has_unknown_flag);
  if (!is_about_extras || extras.empty()) {
    if (what.starts_with("error: ")) return what;
    return fmt::format("error: {}\n  note: {} --help lists its flags\n", in_words(what), full_name(command));
  }
  // The flags behind an unknown command are unknown, too.
  const bool has_commands = !command_names(command).empty(), is_word = !extras.front().starts_with('-');
  if (has_commands && is_word) return unknown_command(command, extras.front());
  for (const std::string& text : extras) {
    if (text.starts_with('-')) return unknown_flag(command, text);
  }
  return fmt::format("error: {} does not take '{}' as well\n  note: {} --help shows what it takes\n",
                     full_name(command), extras.front(), full_name(command));
}

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc; i-- > 1;) {
    std::string& argument = arguments.emplace_back(argv[i]);
    const bool has_flag = argument.starts_with("--") && argument.find('=') != std::string::npos;
    const char* value = argv[i] + (has_flag ? argument.find('=') + 1 : 0);
    if (*value == '[' && argument.ends_with(']') && access(value, F_OK) != 0) argument += ' ';
  }
  return arguments;
}

int exit_without_command(const CLI::App& app, int argc) {
  if (argc > 1) throw CLI::RequiredError("a command");
  print_error("{}", app.help());
  return kUsage;
}

int exit_of_parser(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) {
    print_error("{}", usage_error(app, error));
    return kUsage;
  }
  std::ostringstream out, err;
  app.exit(error, out, err);
  print_text(out.str());
  return kRight;
}

int exit_code_of(const std::function<int()>& run, const ErrorReports& reports) {
  try {
    return run();
  } catch (const CompileError& error) {
    if (reports.unsupported && error.kind() == ErrorKind::kUnsupported) {
      reports.unsupported(error);
      return kUnsupported;
    }
    print_error("{}\n", error.what());
    if (error.kind() == ErrorKind::kUsage) return kUsage;
  } catch (const RuntimeError& error) {
    // The message is one line, because the names in it come from models and artifacts.
    print_error("error: {}\n", printable(error.what(), std::string::npos));
    if (dynamic_cast<const UsageError*>(&error)) return kUsage;
  } catch (const std::bad_alloc&) {
    print_error("error: out of memory\n");
  } catch (const InternalError& error) {
    reports.bug(error.what());
  } catch (const std::exception& error) {
    reports.bug(fmt::format("internal error: {}", error.what()));
  }
  return kWrong;
}

}  // namespace relaxc::tools
