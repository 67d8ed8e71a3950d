// Caches that a run extends in place: what it writes to, what it gives back, and what it refuses.
#include "codegen/compile.h"
#include "support/diagnostic.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;

namespace {

// Two heads of four numbers, with the new tokens behind the past. A total is read from the cache.
constexpr const char* kDecoderOfCaches = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("batch", 2, "length", 4), "float32"), past: R.Tensor(("batch", 2, "tokens", 4), "float32")):
        R.func_attr({"input_names": ["x", "past_0"], "output_names": ["total", "present_0"]})
        with R.dataflow():
            present = R.concat((past, x), axis=2)
            total = R.sum(present, axis=[2])
            R.output(total, present)
        return (total, present)
)";

CompileSettings settings_for(const std::string& text) {
  CompileSettings settings;
  settings.contents = std::as_bytes(std::span(text));
  settings.caches.by_name = true;
  return settings;
}

// What such a program gives for a cache of so many tokens, whose numbers are 1, and two new ones of 10.
struct Run {
  Tensor cache;
  std::vector<Tensor> results;
};
Run run_with(const Program& program, int64_t capacity, int64_t tokens) {
  const Tensor cache = Tensor::empty({1, 2, capacity, 4}, kFloat32), x = Tensor::empty({1, 2, 2, 4}, kFloat32);
  for (int64_t i = 0; i < cache.size(); ++i) cache.set_double(i, (i / 4) % capacity < tokens ? 1 : -7);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, 10);
  Session session(program, {.threads = 1});
  const std::vector<vm::Value> inputs = {x, cache, tokens};
  const vm::Value result = session.run_values(inputs);
  return {cache, {result.tuple().fields()[0].tensor(), result.tuple().fields()[1].tensor()}};
}

// The new rows go where `at` says, for each element of the batch.
constexpr const char* kDecoderOfScatters = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("batch", "length", 4), "float32"), past: R.Tensor(("batch", "room", 4), "float32"), at: R.Tensor(("batch", "length", 4), "int64")):
        R.func_attr({"input_names": ["x", "past_0", "at"], "output_names": ["total", "present_0"]})
        with R.dataflow():
            present = R.scatter_elements(past, at, x, axis=1)
            total = R.sum(present, axis=[1])
            R.output(total, present)
        return (total, present)
)";

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("new tokens are written behind those in the cache, and nothing else is", "[codegen]") {
  const std::string text = kDecoderOfCaches;
  const Program program = compile_file("model.py", settings_for(text)).load();
  REQUIRE(program.inputs().size() == 3);
  CHECK(vm::to_string(program.inputs()[1]) == "past_0: float32[batch, 2, capacity, 4]");
  CHECK(program.inputs()[2].name == "tokens");
  REQUIRE(program.caches().size() == 1);
  CHECK(vm::to_string(program.caches()[0]) == "1 1 2 2");
  for (int64_t tokens : {0, 1, 3, 5}) {
    const Run run = run_with(program, 7, tokens);
    CHECK(run.results[1].raw() == run.cache.raw());
    CHECK(run.results[0].as_double(0) == static_cast<double>(tokens) + 20);
    for (int64_t i = 0; i < run.cache.size(); ++i) {
      const int64_t token = (i / 4) % 7;
      CHECK(run.cache.as_double(i) == (token < tokens ? 1 : token < tokens + 2 ? 10 : -7));
    }
  }
}

TEST_CASE("a scatter writes into the memory of the cache, or refuses positions and leaves it as it was", "[codegen]") {
  const std::string text = kDecoderOfScatters;
  const Program program = compile_file("model.py", settings_for(text)).load();
  REQUIRE(program.caches().size() == 1);
  CHECK(vm::to_string(program.caches()[0]) == "1 1 1 1");  // no input counts the tokens
  const Tensor x = Tensor::empty({2, 2, 4}, kFloat32), cache = Tensor::empty({2, 6, 4}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i));
  for (int64_t i = 0; i < cache.size(); ++i) cache.set_double(i, 100);
  const std::vector<int64_t> firsts = {1, 4};
  auto positions = [&](int64_t more) {
    const Tensor at = Tensor::empty({2, 2, 4}, kInt64);
    for (int64_t i = 0; i < at.size(); ++i) at.set_int(i, firsts[static_cast<size_t>(i / 8)] + i / 4 % 2 + more);
    return at;
  };
  Session session(program, {.threads = 1});
  auto run = [&](int64_t more) {
    const std::vector<vm::Value> inputs = {x, cache, positions(more)};
    return session.run_values(inputs).tuple().fields()[1].tensor();
  };
  CHECK(contains(message_of([&] { run(1); }), "expected -6 to 5"));
  for (int64_t i = 0; i < cache.size(); ++i) CHECK(cache.as_double(i) == 100);
  CHECK(run(0).raw() == cache.raw());
  for (int64_t i = 0; i < cache.size(); ++i) {
    const int64_t batch = i / 24, row = i / 4 % 6 - firsts[static_cast<size_t>(batch)];
    const bool is_new = row >= 0 && row < 2;
    CHECK(cache.as_double(i) == (is_new ? static_cast<double>(batch * 8 + row * 4 + i % 4) : 100));
  }
}

TEST_CASE("a cache without room is refused, and stays as it was", "[codegen]") {
  const std::string text = kDecoderOfCaches;
  const Program program = compile_file("model.py", settings_for(text)).load();
  CHECK(contains(message_of([&] { run_with(program, 7, 6); }),
                 "'more_tokens_than_the_cache_has_room_for': found 7, expected 8"));
  CHECK(contains(message_of([&] { run_with(program, 7, -1); }),
                 "'a_negative_number_of_tokens_in_the_cache': found 0, expected -1"));
  const Tensor memory = Tensor::empty({1, 2, 2, 4}, kFloat32);
  Session session(program, {.threads = 1});
  const std::vector<vm::Value> inputs = {memory, memory, int64_t{0}};
  CHECK(contains(message_of([&] { session.run_values(inputs); }),
                 "input 'past_0' is extended in place, and input 'x' has a part of its memory"));
}

TEST_CASE("what is not a growing cache is an error that says why", "[codegen]") {
  auto refused = [](std::string text, const char* from, const char* to) {
    text.replace(text.find(from), std::string_view(from).size(), to);
    return message_of([&] { (void)compile_file("model.py", settings_for(text)); });
  };
  CHECK(contains(refused(kDecoderOfCaches, "(past, x), axis=2", "(x, past), axis=2"),
                 "is a Concat of it and the new tokens"));
  CHECK(contains(refused(kDecoderOfCaches, "\"tokens\", 4", "3, 4"),
                 "its number of tokens is 3, expected a symbolic dim"));
  CHECK(contains(refused(kDecoderOfCaches, "R.sum(present", "R.sum(past"), "reads it in other places than the Concat"));
  CHECK(contains(refused(kDecoderOfCaches, "present_0", "y"), "there is no cache to extend in place"));
}
