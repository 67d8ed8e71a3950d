#include "tools/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "support/joined.h"
#include "support/lists.h"
#include "support/version.h"
#include "tools/console.h"
#include "tools/inputs.h"

namespace relaxc::tools {

namespace {

// One flag, or one argument by position.
struct FlagText {
  std::vector<std::string> shorts, longs;      // without hyphens
  std::string position;                        // the name of an argument by position
  std::string value;                           // of the value, "" for a flag without one
  std::vector<std::string> choices, examples;  // all values, or some of them
  std::string description;

  const std::vector<std::string>& offered() const { return choices.empty() ? examples : choices; }
};
// One command, such as "relaxc cache clear".
struct CommandText {
  std::vector<std::string> words;  // "cache", "clear"; none for the program itself
  std::string description, footer;
  std::vector<FlagText> flags;
  std::vector<std::pair<std::string, std::string>> commands;  // below it, with their descriptions
};

FlagText text_of(const CLI::Option& option) {
  FlagText text;
  text.shorts = option.get_snames();
  for (const std::string& name : option.get_lnames()) text.longs.push_back(name.substr(0, name.find('{')));
  const bool is_positional = text.shorts.empty() && text.longs.empty();
  if (is_positional) text.position = option.get_name(true);
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0) text.value = type.substr(0, type.find_first_of(":"));
  text.choices = choices_of(option);
  text.examples = examples_of(option);
  text.description = option.get_description();
  return text;
}

bool is_hidden(const CLI::App& app) { return app.get_group().empty(); }

void collect(const CLI::App& app, const std::vector<std::string>& words,
             std::vector<CommandText>& all) {  // NOLINT: bounded
  CommandText command{words, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options(nullptr)) command.flags.push_back(text_of(*option));
  const std::vector<const CLI::App*> below = app.get_subcommands([](const CLI::App* sub) { return !is_hidden(*sub); });
  for (const CLI::App* sub : below) command.commands.emplace_back(sub->get_name(), sub->get_description());
  all.push_back(std::move(command));
  for (const CLI::App* sub : below) {
    std::vector<std::string> path = words;
    path.push_back(sub->get_name());
    collect(*sub, path, all);
  }
}

// ---- Man pages (man 7 man).

std::string roff(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
      result += std::string("\\&") + c;
    else
      result += c;
  }
  return result;
}

std::string names_of(const FlagText& flag) {
  std::vector<std::string> names;
  for (const std::string& name : flag.shorts) names.push_back("\\-" + roff(name));
  for (const std::string& name : flag.longs) names.push_back("\\-\\-" + roff(name));
  std::string text = flag.position.empty() ? fmt::format("\\fB{}\\fR", joined(names, "\\fR, \\fB"))
                                           : fmt::format("\\fI{}\\fR", roff(flag.position));
  if (!flag.value.empty() && flag.position.empty()) text += fmt::format(" \\fI{}\\fR", roff(flag.value));
  return text;
}

std::string synopsis(const std::string& program, const CommandText& command) {
  std::string text = "\\fB" + roff(program);
  for (const std::string& word : command.words) text += " " + roff(word);
  text += "\\fR";
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  text += " [\\fIOPTIONS\\fR]";
  for (const FlagText& flag : command.flags) {
    if (!flag.position.empty()) text += fmt::format(" \\fI{}\\fR", roff(flag.position));
  }
  return text;
}

// Returns what a page says about one command, behind its heading.
std::string man_section(const CommandText& command) {
  std::string text;
  for (const FlagText& flag : command.flags) {
    text += fmt::format(".TP\n{}\n{}", names_of(flag), roff(flag.description));
    if (!flag.choices.empty()) text += fmt::format(": {}", roff(joined(flag.choices)));
    text += "\n";
  }
  if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer));
  return text;
}

std::string man_page(const std::string& program, const std::vector<CommandText>& all) {
  const CommandText& main = all.front();
  std::string title = program;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string page =
      fmt::format(".TH {} 1 \"\" \"relaxc {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH OPTIONS\n{}", roff(title),
                  kVersion, roff(program), roff(main.description), synopsis(program, main), man_section(main));
  page += ".SH COMMANDS\n";
  for (size_t i = 1; i < all.size(); ++i)
    page +=
        fmt::format(".SS {}\n{}\n.PP\n{}", synopsis(program, all[i]), roff(all[i].description), man_section(all[i]));
  return page;
}

// ---- Completions. Without an answer a shell completes names of files.

std::vector<std::string> flags_of(const CommandText& command) {
  std::vector<std::string> flags;
  for (const FlagText& flag : command.flags) {
    for (const std::string& name : flag.longs) flags.push_back("--" + name);
    for (const std::string& name : flag.shorts) flags.push_back("-" + name);
  }
  return flags;
}
// Returns the words that may stand behind the command: commands below it, else what an argument by position may be.
std::vector<std::string> words_of(const CommandText& command) {
  std::vector<std::string> words = map_each(command.commands, [](const auto& below) { return below.first; });
  for (const FlagText& flag : command.flags) {
    if (words.empty() && !flag.position.empty()) words = flag.offered();
  }
  return words;
}

std::string bash_completion(const std::string& program, const std::vector<CommandText>& all) {
  std::string function = "_" + program;
  std::ranges::replace(function, '-', '_');
  std::string text = fmt::format(
      "# Completion of {0} for bash.\n{1}() {{\n  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" "
      "previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\" command='' flags='' commands='' choices='' i\n  COMPREPLY=()\n"
      // Readline takes `--color=always` apart: --color, = and always.
      "  [[ $previous == '=' ]] && previous=\"${{COMP_WORDS[COMP_CWORD-2]}}\"\n  [[ $current == '=' ]] && current=''\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case \"$command:${{COMP_WORDS[i]}}\" in\n",
      program, function);
  for (const CommandText& command : all) {
    for (const auto& [below, _] : command.commands) {
      std::vector<std::string> words = command.words;
      words.push_back(below);
      text += fmt::format("      '{}:{}') command='{}' ;;\n", joined(command.words, " "), below, joined(words, " "));
    }
  }
  text += "    esac\n  done\n  case \"$command\" in\n";
  for (const CommandText& command : all) {
    text += fmt::format("    '{}')\n      flags='{}' commands='{}'\n      case \"$previous\" in\n",
                        joined(command.words, " "), joined(flags_of(command), " "), joined(words_of(command), " "));
    for (const FlagText& flag : command.flags) {
      if (flag.offered().empty() || !flag.position.empty()) continue;
      std::vector<std::string> names = map_each(flag.longs, [](const std::string& name) { return "--" + name; });
      for (const std::string& name : flag.shorts) names.push_back("-" + name);
      text += fmt::format("        {}) choices='{}' ;;\n", joined(names, "|"), joined(flag.offered(), " "));
    }
    text += "      esac ;;\n";
  }
  return text + fmt::format(
                    "  esac\n  if [[ -n $choices ]]; then\n    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
                    "  elif [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
                    "  elif [[ -n $commands ]]; then\n    COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
                    "  fi\n}}\ncomplete -o bashdefault -o default -F {} {}\n",
                    function, program);
}

// Returns the text in single quotes of a shell; `special` characters get a backslash before.
std::string quoted_text(std::string_view text, std::string_view special, const char* quote) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'') {
      result += quote;
      continue;
    }
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result + "'";
}

std::string zsh_spec(const FlagText& flag, const std::string& name) {
  constexpr std::string_view kSpecial = "[]:\\";
  // `=` behind the name lets the value stand behind `=`, or be the next word.
  std::string escaped = name + (name.starts_with("--") && !flag.value.empty() ? "=[" : "[");
  for (char c : flag.description) {
    if (kSpecial.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  escaped += "]";
  if (!flag.value.empty()) {
    std::string answers = "_files";
    if (!flag.choices.empty()) answers = "(" + joined(flag.choices, " ") + ")";
    if (!flag.examples.empty()) answers = "{compadd -- " + joined(flag.examples, " ") + "; _files}";
    escaped += fmt::format(":{}:{}", flag.value, answers);
  }
  return quoted_text(escaped, "", "'\\''");
}

std::string zsh_completion(const std::string& program, const std::vector<CommandText>& all) {
  std::string text = fmt::format(
      "#compdef {}\n# Completion of {} for zsh.\n\nlocal -a commands\nlocal command='' word\n", program, program);
  text += "for word in ${words[2,CURRENT-1]}; do\n  case \"$command:$word\" in\n";
  for (const CommandText& command : all) {
    for (const auto& [below, _] : command.commands) {
      std::vector<std::string> words = command.words;
      words.push_back(below);
      text += fmt::format("    '{}:{}') command='{}' ;;\n", joined(command.words, " "), below, joined(words, " "));
    }
  }
  text += "  esac\ndone\ncase \"$command\" in\n";
  for (const CommandText& command : all) {
    text += fmt::format("  '{}')\n", joined(command.words, " "));
    if (!command.commands.empty()) {
      text += "    commands=(";
      for (const auto& [below, description] : command.commands)
        text += "\n      " + quoted_text(below + ":" + description, "", "'\\''");
      text += ")\n    [[ $words[CURRENT] == -* ]] || _describe command commands\n";
    }
    text += "    _arguments";
    for (const FlagText& flag : command.flags) {
      for (const std::string& name : flag.longs) text += " \\\n      " + zsh_spec(flag, "--" + name);
      for (const std::string& name : flag.shorts) text += " \\\n      " + zsh_spec(flag, "-" + name);
    }
    const std::vector<std::string> last = words_of(command);
    if (last.empty()) text += " \\\n      '*:file:_files'";
    if (!last.empty() && command.commands.empty()) text += fmt::format(" \\\n      '*:word:({})'", joined(last, " "));
    text += " ;;\n";
  }
  return text + "esac\n";
}

std::string fish_completion(const std::string& program, const std::vector<CommandText>& all) {
  constexpr const char* kQuote = "\\'";
  std::string text = fmt::format("# Completion of {} for fish.\n", program);
  for (const CommandText& command : all) {
    std::string condition = command.words.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& word : command.words)
      condition += (condition.empty() ? "" : "; and ") + fmt::format("__fish_seen_subcommand_from {}", word);
    const std::string head = fmt::format("complete -c {} -n '{}'", program, condition);
    for (const auto& [below, description] : command.commands)
      text += fmt::format("{} -f -a {} -d {}\n", head, below, quoted_text(description, "\\", kQuote));
    if (const std::vector<std::string> last = words_of(command); !last.empty() && command.commands.empty())
      text += fmt::format("{} -f -a '{}'\n", head, joined(last, " "));
    for (const FlagText& flag : command.flags) {
      if (!flag.position.empty()) continue;
      text += head;
      for (const std::string& name : flag.longs) text += " -l " + name;
      for (const std::string& name : flag.shorts) text += " -s " + name;
      if (!flag.value.empty()) text += " -r";
      if (!flag.choices.empty()) text += " -f";
      if (!flag.offered().empty()) text += fmt::format(" -a '{}'", joined(flag.offered(), " "));
      text += fmt::format(" -d {}\n", quoted_text(flag.description, "\\", kQuote));
    }
  }
  return text;
}

}  // namespace

void add_manual(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("manual", "write man pages and completions to a folder");
  command->group("");  // it is for the build
  command->add_option("folder", *folder, "the folder")->required();
  command->callback([folder, &app] {
    const std::string program = app.get_name();
    std::vector<CommandText> all;
    collect(app, {}, all);
    vm::make_folder(*folder);
    vm::write_file(fmt::format("{}/{}.1", *folder, program), man_page(program, all));
    vm::write_file(fmt::format("{}/{}.bash", *folder, program), bash_completion(program, all));
    vm::write_file(fmt::format("{}/_{}", *folder, program), zsh_completion(program, all));
    vm::write_file(fmt::format("{}/{}.fish", *folder, program), fish_completion(program, all));
  });
}

}  // namespace relaxc::tools
