#include "tools/generation.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ranges>

#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/whole_number.h"
#include "tools/console.h"
#include "tools/decoder.h"
#include "tools/progress_line.h"
#include "tools/timing.h"

namespace relaxc::tools {

void GenerationOptions::add_to(CLI::App& app) {
  CLI::Option* numbers = app.add_option("--tokens", prompt, "the prompt as numbers: 1,2,3");
  CLI::Option* file = app.add_option("--vocabulary", vocabulary, "the file of the tokens' texts (docs/relaxc.md)")
                          ->check(CLI::ExistingFile);
  CLI::Option* as_text = app.add_option("--text", text, "the prompt as text")->needs(file)->excludes(numbers);
  CLI::Option* lines =
      app.add_option("--prompts", prompts, "a file with a prompt in each line, as --text or --tokens take it")
          ->check(CLI::ExistingFile)
          ->excludes(numbers)
          ->excludes(as_text);
  app.add_option("--batch", batch, "prompts of the file that a run computes at once, where the model allows it")
      ->needs(lines)
      ->check(whole_number_in(1, kMostRuns))
      ->capture_default_str();
  app.add_option("--count", count, "the number of tokens to generate")
      ->check(whole_number_in(0, kMostRuns))
      ->capture_default_str();
  CLI::Option* temperature =
      app.add_option("--temperature", sampler.temperature,
                     "draw tokens, more evenly the higher it is; 0: take the most likely one, always")
          ->check(number_from(0))
          ->capture_default_str();
  app.add_option("--top-k", sampler.top_k, "draw among the K most likely tokens (0: all)")
      ->needs(temperature)
      ->check(whole_number_in(0, kMostRuns));
  app.add_option("--seed", sampler.seed, "the seed of the draws: the same one gives the same tokens")
      ->needs(temperature)
      ->check(whole_number_in(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  app.add_option("--stop", stops, "a token (number or text) that ends the text, repeatable")->allow_extra_args(false);
  app.add_option("--past", caches, "PAST=PRESENT, an input and the output that is its next value, repeatable")
      ->allow_extra_args(false);
  app.add_option("--input", inputs.named,
                 "NAME=FILE or NAME=VALUE, an input that stays the same, such as an encoder's");
  add_threads(app, threads);
  add_memory_limit(app, memory_limit);
}

namespace {

std::optional<Vocabulary> vocabulary_of(const GenerationOptions& options) {
  if (options.vocabulary.empty()) return std::nullopt;
  if (!options.vocabulary.ends_with(".json")) return Vocabulary::read_lines(options.vocabulary);
  if (options.read_json) return options.read_json(options.vocabulary);
  fail({}, "'{}': this program reads a vocabulary with one token in each line; relaxc reads JSON",
       printable(options.vocabulary));
}

// Returns the caches that flags name.
std::map<std::string, std::string> named_caches(const GenerationOptions& options) {
  std::map<std::string, std::string> result;
  for (const std::string& text : options.caches) {
    const auto [past, present] = parse_cache(text);
    result.insert_or_assign(past, present);
  }
  return result;
}

void expect_in_range(int64_t token, std::optional<int64_t> size) {
  if (size && token >= *size) fail({}, "token {} does not exist: the model has the tokens 0 to {}", token, *size - 1);
}

int64_t token_of(std::string_view text, const char* where) {
  const std::optional<int64_t> token = whole_number(text);
  if (!token) throw CLI::ValidationError(fmt::format("{}: '{}': expected a number from 0", where, printable(text)));
  return *token;
}

// Returns the tokens between commas, none of which may be missing.
std::vector<int64_t> tokens_in(std::string_view text, const char* where) {
  std::vector<int64_t> tokens;
  for (auto part : std::views::split(text, ','))
    tokens.push_back(token_of(std::string_view(part.begin(), part.end()), where));
  return tokens;
}

// Returns the prompts of a file: texts where there is a vocabulary, else numbers.
std::vector<std::vector<int64_t>> read_prompts(const std::string& path, const std::optional<Vocabulary>& vocabulary) {
  std::ifstream file(path);
  if (!file) fail({}, "cannot read the prompts '{}'", printable(path));
  std::vector<std::vector<int64_t>> prompts;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (prompts.empty()) line = without_byte_order_mark(line);
    if (line.empty())
      fail({}, "{}:{}: a text begins with a token, and the line is empty", printable(path), prompts.size() + 1);
    prompts.push_back(vocabulary ? vocabulary->encode(line) : tokens_in(line, "--prompts"));
  }
  if (prompts.empty()) fail({}, "the file of prompts '{}' is empty", printable(path));
  return prompts;
}

std::vector<std::vector<int64_t>> prompts_of(const GenerationOptions& options,
                                             const std::optional<Vocabulary>& vocabulary) {
  if (!options.prompts.empty()) return read_prompts(options.prompts, vocabulary);
  if (!options.text.empty()) return {vocabulary->encode(options.text)};
  std::vector<int64_t> tokens;
  for (const std::string& text : options.prompt)
    std::ranges::copy(tokens_in(text, "--tokens"), std::back_inserter(tokens));
  if (tokens.empty())
    throw CLI::ValidationError(
        "a text begins with a token: --tokens 1,2,3, or --vocabulary FILE --text \"...\", or --prompts FILE");
  return {tokens};
}

std::vector<int64_t> stops_of(const GenerationOptions& options, const std::optional<Vocabulary>& vocabulary) {
  return map_each(options.stops, [&](const std::string& text) {
    const int64_t* named = vocabulary ? vocabulary->find(text) : nullptr;
    const std::optional<int64_t> number = named ? *named : whole_number(text);
    if (!number)
      throw CLI::ValidationError(
          fmt::format("--stop: '{}' is not a token: expected a number{}", printable(text),
                      vocabulary ? " or a text of the vocabulary" : "; texts need --vocabulary"));
    return *number;
  });
}

// Returns the values of the inputs that are the same in each run.
std::vector<vm::Value> constant_inputs(const vm::Function& function, const DecoderRoles& roles,
                                       const GenerationOptions& options) {
  const auto infos = map_each(roles.others, [&](size_t i) { return function.inputs[i]; });
  const std::vector<WrittenValue> given = options.inputs.given(infos);
  for (size_t i = 0; i < infos.size(); ++i) {
    if (given[i].text != "_" || given[i].open || given[i].tensor || given[i].value) continue;
    fail({},
         "input '{}' is neither the tokens nor attention_mask, position_ids or a cache with an output of its name; "
         "give its value by --input, or the output that is its next value by --past '{}=OUTPUT'; the outputs are {}",
         printable(to_string(infos[i])), printable(infos[i].name),
         joined(function.outputs, [](const vm::ValueInfo& info) { return printable(to_string(info)); }));
  }
  return options.inputs.make(infos);
}

std::string rate(int64_t tokens, double ms) {
  return fmt::format("{} token{} in {:.1f} ms, {:.1f} tokens/s", tokens, tokens == 1 ? "" : "s", ms,
                     static_cast<double>(tokens) * 1000 / std::max(ms, 1e-6));
}

// How many tokens were read and made, and in which time.
struct Counts {
  int64_t read = 0, made = 0;
  double ms_of_prompts = 0, ms_of_steps = 0;
};

// A text that is continued: its tokens as texts, or as numbers that --tokens takes. Draws do not depend on other texts.
struct ContinuedText {
  Sampler sampler;
  std::string printed = {};
  bool is_first = true, has_ended = false;

  void add(int64_t token, const std::optional<Vocabulary>& vocabulary) {
    printed += vocabulary ? vocabulary->text(token) : fmt::format("{}{}", is_first ? "" : ",", token);
    is_first = false;
  }
};

// Continues texts and prints each in a line; a single one token by token.
class Generator {
 public:
  Generator(Decoder& decoder, const std::vector<int64_t>& stops, const std::optional<Vocabulary>& vocabulary,
            const GenerationOptions& options)
      : decoder_(decoder), stops_(stops), vocabulary_(vocabulary), options_(options) {}

  void run(std::span<const std::vector<int64_t>> prompts, Counts& counts) {
    texts_.assign(prompts.size(), {Sampler(options_.sampler)});
    shows_tokens_ = texts_.size() == 1 && isatty(STDOUT_FILENO) == 1;
    progress_line().show("reading the prompt");
    const double start = now_ms();
    std::vector<std::vector<double>> logits = decoder_.append(prompts);
    const double begin_of_steps = now_ms();
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (vocabulary_) std::ranges::for_each(prompts[i], [&](int64_t token) { texts_[i].add(token, vocabulary_); });
      counts.read += std::ssize(prompts[i]);
    }
    try {
      counts.made += continue_texts(std::move(logits));
    } catch (...) {
      if (texts_.size() == 1) print_text("\n");  // behind the tokens
      throw;
    }
    counts.ms_of_prompts += begin_of_steps - start;
    counts.ms_of_steps += now_ms() - begin_of_steps;
    for (const ContinuedText& text : texts_) print_text(text.printed + "\n");
    vm::flush(stdout);
  }

 private:
  // Returns how many tokens were made by runs.
  int64_t continue_texts(std::vector<std::vector<double>> logits) {
    int64_t made = 0;
    for (int64_t i = 0; i < options_.count; ++i) {
      const std::vector<std::vector<int64_t>> chosen = next_tokens(logits);
      print_single();
      const auto going = std::ranges::count(texts_, false, &ContinuedText::has_ended);
      if (going == 0 || i + 1 == options_.count) break;
      if (!shows_tokens_)
        progress_line().show(
            fmt::format("{} of {} tokens{}", i + 1, options_.count, texts_.size() > 1 ? " of each text" : ""));
      logits = decoder_.append(chosen);
      made += going;
    }
    return made;
  }
  // Returns the next token of each text that goes on.
  std::vector<std::vector<int64_t>> next_tokens(const std::vector<std::vector<double>>& logits) {
    std::vector<std::vector<int64_t>> result(texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      ContinuedText& text = texts_[i];
      if (text.has_ended) continue;
      const int64_t token = text.sampler.choose(logits[i]);
      text.has_ended = std::ranges::count(stops_, token) > 0;
      if (text.has_ended) continue;
      text.add(token, vocabulary_);
      result[i] = {token};
    }
    return result;
  }
  void print_single() {
    if (texts_.size() > 1) return;
    const std::string made = std::exchange(texts_[0].printed, "");
    shows_tokens_ ? print_text(made) : vm::print_to(stdout, made);  // elsewhere the line of progress stays
    vm::flush(stdout);
  }

  Decoder& decoder_;
  const std::vector<int64_t>& stops_;
  const std::optional<Vocabulary>& vocabulary_;
  const GenerationOptions& options_;
  std::vector<ContinuedText> texts_;
  bool shows_tokens_ = false;  // on a terminal, as they are made
};

// Returns the number of prompts that a run computes, and says why it is one, where more were possible.
int64_t prompts_at_once(const vm::Function& function, const DecoderRoles& roles, int64_t count, int64_t batch) {
  if (count == 1 || batch == 1) return 1;
  const std::string why = why_one_by_one(function, roles);
  if (why.empty()) return std::min(count, batch);
  print_note("note: the prompts are continued one after another, since the model cannot take them as a batch: {}\n",
             why);
  return 1;
}

}  // namespace

void generate(const Program& program, const vm::Function& function, const GenerationOptions& options) {
  const std::optional<Vocabulary> vocabulary = vocabulary_of(options);
  const std::vector<std::vector<int64_t>> prompts = prompts_of(options, vocabulary);
  const std::vector<int64_t> stops = stops_of(options, vocabulary);
  const DecoderRoles roles = decoder_roles(program, function, named_caches(options));
  const std::vector<vm::Value> others = constant_inputs(function, roles, options);
  Session session(program, {.threads = options.threads, .memory_limit = options.memory_limit});
  const Decoder empty(session, function, roles, others);
  auto expect_all_in_range = [&](const std::vector<int64_t>& tokens) {
    for (int64_t token : tokens) expect_in_range(token, empty.vocabulary_size());
  };
  std::ranges::for_each(prompts, expect_all_in_range);
  expect_all_in_range(stops);
  if (!empty.has_cache())
    print_note("note: the model has no cache (past_key_values and present), so each step runs the whole text again\n");
  const auto at_once = static_cast<size_t>(prompts_at_once(function, roles, std::ssize(prompts), options.batch));
  Counts counts;
  for (size_t i = 0; i < prompts.size(); i += at_once) {
    const auto batch = std::span(prompts).subspan(i, std::min(at_once, prompts.size() - i));
    Decoder decoder(session, function, roles, others, std::ssize(batch));
    Generator(decoder, stops, vocabulary, options).run(batch, counts);
  }
  print_note("prompt: {}\n", rate(counts.read, counts.ms_of_prompts));
  if (counts.made > 0) print_note("steps: {}\n", rate(counts.made, counts.ms_of_steps));
}

}  // namespace relaxc::tools
