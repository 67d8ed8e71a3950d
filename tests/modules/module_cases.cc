// `# test: run`: a module, or a model in ONNX's textual format (frontend/onnx_text.h), runs on given inputs, as machine
// code and in the interpreter, with the same results.
//
//   # test: run
//   @R.function
//   def main(x: R.Tensor(("n",), "float32"), n: R.Tensor((), "int64")): ...
//   # ---- run: three elements        an input for each line
//   x = [1.5, -2, inf]
//   n = numbers()                     numbers(2, 3): 0.5, -1, 1.5, ... of that shape
//   s = [2, 3]                        values of other kinds as the command line has them (tools/values.h)
//   # ---- result                     what ./dev update writes
//   y: float32[3] = [3, -4, inf]
//   # ---- run: results from elsewhere
//   x = [0.1]
//   # ---- expected                   what another program computed (tests/onnx/make_cases.py); floats may differ a
//   little y: float32[1] = [0.30000001] # ---- run: no elements           a run that fails, without a result x = [] #
//   error: 'x' # ---- run: another function      the default one is that of Program::function()
//   @scale
//   x = [1]
//
// A section `kernels` behind the module has the user's kernels for it (passes/kernel_rules.h).
//
// Choose inputs whose results are exact: they are the same on every machine. A module that does not compile has its
// errors in the text and no sections.

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "passes/kernel_rules.h"
#include "support/joined.h"
#include "tests/frontend/onnx_model.h"
#include "tests/frontend/onnx_text.h"
#include "tests/text/harness.h"
#include "tools/compare.h"
#include "tools/values.h"
#include "vm/error.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Elements in brackets, in the order of memory, and the shape that the brackets give.
struct Written {
  std::vector<std::string> elements;
  std::vector<int64_t> shape;
};

class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : rest_(text) {}

  // Each list has as many items as its neighbours; the depth of the first element is the rank.
  Written read() {
    Written result;
    read_item(result, 0);
    skip(' ');
    if (!rest_.empty()) FAIL("expected the end of the value, found '" << rest_ << "'");
    return result;
  }

 private:
  bool skip(char c) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void read_item(Written& into, size_t depth) {
    if (!skip('[')) {
      size_t end = std::min(rest_.find_first_of(",] "), rest_.size());
      if (end == 0) FAIL("expected a number or a list, found '" << rest_ << "'");
      into.elements.emplace_back(rest_.substr(0, end));
      rest_.remove_prefix(end);
      return;
    }
    int64_t items = 0;
    if (into.shape.size() <= depth) into.shape.push_back(-1);
    while (!skip(']')) {
      if (items++ > 0 && !skip(',')) FAIL("expected ',' or ']', found '" << rest_ << "'");
      read_item(into, depth + 1);
    }
    int64_t& dim = into.shape[depth];
    if (dim >= 0 && dim != items) FAIL("a list has " << items << " items, the one before has " << dim);
    dim = items;
  }

  std::string_view rest_;
};

Tensor tensor_of(const Written& written, DType dtype) {
  Tensor tensor = Tensor::empty(written.shape, dtype);
  REQUIRE(tensor.size() == static_cast<int64_t>(written.elements.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const std::string& element = written.elements[static_cast<size_t>(i)];
    char* end = nullptr;
    if (dtype.is_float()) {
      tensor.set_double(i, std::strtod(element.c_str(), &end));
    } else if (element == "True" || element == "False") {
      tensor.set_int(i, element == "True");
      continue;
    } else {
      tensor.set_int(i, dtype.is_uint() ? static_cast<int64_t>(std::strtoull(element.c_str(), &end, 10))
                                        : std::strtoll(element.c_str(), &end, 10));
    }
    if (*end) FAIL("'" << element << "' is not a value of " << to_string(dtype));
  }
  return tensor;
}

Tensor read_value(std::string_view text, DType dtype) {
  constexpr std::string_view kNumbers = "numbers(";
  if (!text.starts_with(kNumbers)) return tensor_of(ValueReader(text).read(), dtype);
  std::vector<int64_t> shape;
  std::stringstream dims{std::string(text.substr(kNumbers.size()))};
  for (std::string dim; std::getline(dims, dim, ',');) {
    if (dim != ")") shape.push_back(std::strtoll(dim.c_str(), nullptr, 10));
  }
  return numbers(shape, dtype);
}

// The function that a line names, such as `@scale`.
std::string function_of(const std::string& body) {
  std::stringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("@")) return line.substr(1);
  }
  return "";
}

vm::Value read_input(std::string_view text, const vm::ValueInfo& param) {
  bool is_plain = param.kind == vm::ValueKind::kTensor && param.dtype && !param.dtype->is_string() &&
                  !param.dtype->is_complex() && !param.is_optional;
  if (is_plain) return read_value(text, *param.dtype);
  return tools::InputMaker({}, 0).make({param}, {tools::parse_value(text)}).front();
}

std::vector<vm::Value> read_inputs(const std::string& body, const std::vector<vm::ValueInfo>& params) {
  std::vector<vm::Value> inputs;
  std::stringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == '@') continue;
    size_t equals = line.find(" = ");
    if (equals == std::string::npos || inputs.size() >= params.size())
      FAIL("expected an input, found '" << line << "'");
    const vm::ValueInfo& param = params[inputs.size()];
    if (line.substr(0, equals) != param.name) FAIL("expected input '" << param.name << "', found '" << line << "'");
    inputs.push_back(read_input(std::string_view(line).substr(equals + 3), param));
  }
  return inputs;
}

// Values that are tensors, or have tensors in them, are shown with all elements.
std::string full_text(const vm::Value& value) {
  if (const auto* tensor = value.get_if<Tensor>())
    return fmt::format("{} = {}", describe(*tensor), tools::elements_text(*tensor));
  if (const auto* sequence = value.get_if<vm::Sequence>())
    return fmt::format("[{}]", joined(sequence->items.fields(), full_text));
  if (const auto* map = value.get_if<vm::Map>())
    return fmt::format("map from {} to {}", full_text(map->keys()), full_text(map->values()));
  return "";
}
std::string result_text(const tools::NamedValue& result) {
  std::string text = full_text(result.value);
  return text.empty() ? tools::summary(result) + "\n" : fmt::format("{}: {}\n", result.name, text);
}

struct Outcome {
  std::vector<tools::NamedValue> results;
  std::string error;  // empty: it ran
};
Outcome run(Session& session, const std::vector<vm::Value>& inputs, const vm::Function& function) {
  try {
    return {tools::flat_results(session.run_values(inputs, function.name), function.outputs), ""};
  } catch (const RuntimeError& error) {
    return {{}, error.what()};
  }
}

// Runs on both engines give the results that another program computed, but for the last digits of floats.
void check_expected(const std::string& body, const std::vector<tools::NamedValue>& results) {
  std::stringstream lines(body);
  size_t next = 0;
  for (std::string line; std::getline(lines, line); ++next) {
    size_t colon = line.find(": "), equals = line.find(" = ");
    if (colon == std::string::npos || equals == std::string::npos || next >= results.size())
      FAIL("expected a result, found '" << line << "'");
    std::optional<Tensor> actual = tools::as_tensor(results[next]);
    REQUIRE(actual.has_value());
    INFO(result_text(results[next]) << "expected " << line);
    CHECK(results[next].name == line.substr(0, colon));
    bool is_alike = describe(*actual) == line.substr(colon + 2, equals - colon - 2);
    CHECK(is_alike);
    if (!is_alike || actual->size() == 0) continue;
    DType dtype = actual->dtype();
    double limit = !dtype.is_float() ? 0 : dtype.bits == 16 ? 1e-2 : dtype == kFloat64 ? 1e-10 : 2e-5;
    CHECK(tools::compare("it", *actual, read_value(line.substr(equals + 3), dtype), limit, limit).empty());
  }
  CHECK(next == results.size());
}

// The results as text; nullopt: the run failed as expected.
std::optional<std::string> run_case(const Section& section, const Section* expected, Session& compiled,
                                    Session& interpreted, const Program& program) {
  const vm::Function& function = program.function(function_of(section.body));
  std::vector<vm::Value> inputs = read_inputs(section.body, function.inputs);
  Outcome machine = run(compiled, inputs, function), reference = run(interpreted, inputs, function);
  if (!machine.error.empty() || !reference.error.empty()) {
    check_message(section.body, machine.error);
    check_message(section.body, reference.error);
    return std::nullopt;
  }
  if (expects_errors(section.body)) FAIL_CHECK("expected an error, the run has results");
  REQUIRE(machine.results.size() == reference.results.size());
  if (expected) {
    check_expected(expected->body, machine.results);
    check_expected(expected->body, reference.results);
    return std::nullopt;
  }
  CHECK(machine.results.size() >= function.outputs.size());
  std::string text;
  for (size_t i = 0; i < machine.results.size(); ++i) {
    text += result_text(machine.results[i]);
    INFO(text);
    std::optional<Tensor> result = tools::as_tensor(machine.results[i]);
    std::optional<Tensor> other = tools::as_tensor(reference.results[i]);
    REQUIRE(result.has_value() == other.has_value());
    if (result) CHECK(same_contents(*result, *other));
    if (!result) CHECK(full_text(machine.results[i].value) == full_text(reference.results[i].value));
  }
  return text;
}

}  // namespace

void run_module_cases(TextTest& test) {
  std::string input = test.input();
  std::optional<Program> compiled, interpreted;
  try {
    CompileSettings settings;
    if (test.sections.size() > 1 && test.sections[1].header == "kernels") {
      std::string text = test.sections[1].in_place();
      settings.kernels =
          std::make_shared<const std::vector<KernelRule>>(read_kernel_rules(text, test.name(), op_table()));
      settings.schedules = read_schedule_rules(text, test.name());
    }
    ImportOptions options;
    if (settings.kernels) options.kernels = node_kernels(*settings.kernels);
    Diagnostics warnings;
    IRModule module = is_onnx_text(input) ? import_onnx_text(input, test.name(), options)
                                          : parse_module(input, test.name(), op_table(), warnings);
    if (!expects_failure(input)) {
      check_errors(input, warnings.all());  // each warning is expected
    } else {
      for (const Diagnostic& diagnostic : warnings.all()) FAIL_CHECK(to_string(diagnostic));
    }
    warnings.throw_if_errors();
    compiled = compile(module, settings).load();
    settings.interpret = InterpretOptions{};
    interpreted = compile(module, settings).load();
  } catch (const CompileError& error) {
    CHECK(test.sections.size() == (test.sections.back().header == "kernels" ? 2 : 1));
    return check_errors(input, error.diagnostics());
  }
  if (expects_failure(input)) FAIL("expected an error, the module compiles");
  REQUIRE(test.sections.size() > 1);
  Session machine(*compiled, {.threads = 2}), reference(*interpreted, {.threads = 1});
  for (size_t i = 1; i < test.sections.size(); ++i) {
    if (test.sections[i].header == "kernels") continue;
    INFO(fmt::format("{}:{}: {}", test.name(), test.sections[i].line - 1, test.sections[i].header));
    if (!test.sections[i].words_of("run")) {
      FAIL_CHECK("expected a section 'run', found '" << test.sections[i].header << "'");
      continue;
    }
    const Section* next = i + 1 < test.sections.size() ? &test.sections[i + 1] : nullptr;
    bool has_result = next && next->header == "result", is_expected = next && next->header == "expected";
    std::optional<std::string> result =
        run_case(test.sections[i], is_expected ? next : nullptr, machine, reference, *compiled);
    if (is_expected) {
      ++i;
    } else if (result) {
      test.set_section_behind(i++, "result", *result);
    } else if (has_result) {
      test.sections.erase(test.sections.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }
}

}  // namespace relaxc::test
