#include "tools/in_turn.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

std::string verdict(std::vector<double> ratios) {
  constexpr size_t kFewestPairs = 8;  // with fewer, three of four are on one side too often by chance
  if (ratios.size() < kFewestPairs)
    return fmt::format("no clear difference, as there are only {} pairs of runs; --runs and --seconds allow for more",
                       ratios.size());
  std::ranges::sort(ratios);
  const double low = ratios[ratios.size() / 4], high = ratios[ratios.size() * 3 / 4];
  if (high < 1) return "faster";
  if (low > 1) return "slower";
  return fmt::format("no clear difference, as half of the ratios of neighbouring runs are {:.3f} to {:.3f}", low, high);
}

double Measured::run(const std::vector<vm::Value>& inputs) {
  double start = now_ms();
  session.run_values(inputs, function);
  return now_ms() - start;
}

void compare_results(Measured& first, Measured& second, const std::vector<vm::Value>& inputs,
                     const Closeness& closeness, InTurn& result) {
  progress_line().show("comparing the results");
  const std::vector<vm::ValueInfo>& outputs = first.signature().outputs;
  const auto actual = flat_results(first.session.run_values(inputs, first.function), outputs);
  const auto expected = flat_results(second.session.run_values(inputs, second.function), outputs);
  progress_line().end();
  if (actual.size() != expected.size())
    result.wrong = fmt::format("{} results, expected {}", actual.size(), expected.size());
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const vm::Value &value = actual[i].value, &wanted = expected[i].value;
    result.greatest_difference = std::max(result.greatest_difference, greatest_difference(value, wanted));
    if (result.wrong.empty()) result.wrong = compare_closely(actual[i].name, value, wanted, closeness);
  }
  result.text += fmt::format("greatest difference of the results {:.3g}\n", result.greatest_difference);
}

bool is_right(const InTurn& compared, const std::string& other) {
  if (compared.wrong.empty()) return true;
  print_error(
      "wrong result against {}: {}\n  note: --rtol and --atol say how much may differ: models of other precision "
      "do, by what 'relaxc quantize' and 'relaxc compile --check-inputs' report\n",
      other, printable(compared.wrong, std::string::npos));
  return false;
}

namespace {

// Reports inputs that have the names of the model's and another order, so that each would get the value of another.
void check_order(const std::string& file, const std::vector<vm::ValueInfo>& others,
                 const std::vector<vm::ValueInfo>& infos) {
  std::vector<std::string> names = map_each(infos, &vm::ValueInfo::name);
  std::vector<std::string> other_names = map_each(others, &vm::ValueInfo::name);
  if (names == other_names || !std::ranges::is_permutation(names, other_names)) return;
  fail({}, "--compare '{}' takes the inputs of the model in another order: {}, and the model {}", file,
       joined(other_names), joined(names));
}

// Returns dtype and shape of a tensor, and the kind of another value.
std::string form_of(const NamedValue& result) {
  const Tensor* tensor = result.value.get_if<Tensor>();
  return tensor ? describe(*tensor) : std::string(vm::to_string(result.value.kind()));
}

// Runs them in pairs, and tells their medians and the median ratio of neighbouring runs.
InTurn measure_pair(Measured& first, Measured& second, const std::vector<vm::Value>& inputs,
                    const TimingOptions& timing) {
  std::vector<double> a, b, ratios;
  const double begin = now_ms();
  auto time = [&](Measured& measured, std::vector<double>& times) {
    timing.prepare_run();
    times.push_back(measured.run(inputs));
  };
  while (timing.goes_on(a.size(), begin)) {
    const bool is_even = a.size() % 2 == 0;  // each is the first one in every other pair
    if (is_even) time(first, a);
    time(second, b);
    if (!is_even) time(first, a);
    ratios.push_back(a.back() / b.back());
    progress_line().show(timing.progress(a.size(), "pairs of runs"));
  }
  progress_line().end();
  InTurn result{median_of(b), median_of(a), median_of(ratios), true, {}};
  result.text = fmt::format("{} against {} in turn{} (medians of {}), ratio {:.3f}: {}\n", as_ms(result.with_ms),
                            as_ms(result.without_ms), timing.of_caches(), a.size(), result.ratio, verdict(ratios));
  return result;
}

}  // namespace

void OtherFile::add_to(CLI::App& app, const std::string& kinds) {
  auto is_named = [](const std::string& text) { return text.empty() ? "expected the name of a file" : ""; };
  app.add_option("--compare", path, fmt::format("another file ({}) that is run in turn, with the same inputs", kinds))
      ->check(CLI::Validator(is_named, ""));
  add_tolerances(app, closeness.rtol, closeness.atol, "for two versions: ");
}

void OtherFile::check(const Program& other, std::string_view function, Measured& model,
                      const std::vector<vm::Value>& inputs) const {
  std::vector<NamedValue> results, others;
  progress_line().show(printable(fmt::format("a run of {} on the inputs of the model", path), std::string::npos));
  try {
    const vm::Function& signature = other.function(function);
    check_order(path, signature.inputs, model.signature().inputs);
    others = flat_results(Session(other, {.threads = 1}).run_values(inputs, signature.name), signature.outputs);
  } catch (const RuntimeError& error) {
    fail({}, "--compare '{}' does not take the inputs of the model: {}", path, error.what());
  }
  results = flat_results(model.session.run_values(inputs, model.function), model.signature().outputs);
  progress_line().end();
  if (others.size() != results.size())
    fail({}, "--compare '{}' has {}, and the model {}", path, counted(others.size(), "result"), results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (form_of(others[i]) != form_of(results[i]))
      fail({}, "--compare '{}' has a result '{}' that is {}, and that of the model, '{}', is {}", path, others[i].name,
           form_of(others[i]), results[i].name, form_of(results[i]));
  }
}

InTurn OtherFile::measure(Measured& model, Measured& other, const std::vector<vm::Value>& inputs,
                          const TimingOptions& timing) const {
  first_runs(timing, [&] { return other.run(inputs); }, path);
  InTurn result = measure_pair(model, other, inputs, timing);
  compare_results(model, other, inputs, closeness, result);
  return result;
}

Report figures_of(const InTurn& compared) {
  return {{"median_ms", compared.with_ms},
          {"other_median_ms", compared.without_ms},
          {"ratio", compared.ratio},
          {"greatest_difference", compared.greatest_difference}};
}

}  // namespace relaxc::tools
