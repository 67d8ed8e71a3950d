// The cache of artifacts (codegen/artifact_cache.h): what equals what, and what happens to damaged and foreign files.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "codegen/artifact_cache.h"
#include "codegen/kernel_files.h"
#include "codegen/options.h"
#include "support/diagnostic.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;
namespace fs = std::filesystem;

namespace {

// y = x @ w, whose weight is in a file of its own where `weights` names one.
std::string write_product_model(const test::Folder& folder, const std::string& name, const Tensor& weight,
                                const std::string& weights = "") {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  model.constant("w", weight);
  model.node("MatMul", "x w", "y");
  if (weights.empty()) return folder.write(name, model.proto().SerializeAsString());
  auto* constant = model.proto().mutable_graph()->mutable_initializer(0);
  folder.write(weights, std::string(static_cast<const char*>(weight.raw()), static_cast<size_t>(weight.bytes())));
  constant->clear_raw_data();
  constant->clear_float_data();
  constant->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = constant->add_external_data();
  location->set_key("location"), location->set_value(weights);
  return folder.write(name, model.proto().SerializeAsString());
}

Tensor filled_weight(float value) {
  Tensor weight = Tensor::empty({4, 3}, kFloat32);
  std::fill_n(weight.data<float>(), 12, value);
  return weight;
}

// A folder of models and one of artifacts.
struct CachedModels {
  test::Folder folder{"cached"};
  std::vector<std::string> notes, warnings;
  ArtifactCache cache{.folder = folder.at("cache"),
                      .note = [this](const std::string& line) { notes.push_back(line); },
                      .warn = [this](const std::string& line) { warnings.push_back(line); }};

  CachedProgram load(const std::string& model, const CompileSettings& settings = {}) {
    return load_cached(model, settings, cache);
  }
  // Returns the first result for ones.
  float result(const CachedProgram& loaded) const {
    Tensor x = Tensor::empty({1, 4}, kFloat32);
    std::fill_n(x.data<float>(), 4, 1.0F);
    Session session(loaded.program, {.threads = 1});
    return session.run({x}).at(0).data<float>()[0];
  }
  size_t count() const { return cached_artifacts(cache.folder).size(); }
};

}  // namespace

TEST_CASE("the same model is compiled once", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  const CachedProgram first = it.load(model), second = it.load(model);
  CHECK_FALSE(first.was_cached);
  CHECK(second.was_cached);
  CHECK(first.artifact == second.artifact);
  CHECK(it.result(first) == 8);
  CHECK(it.result(second) == 8);
  // Its place and name do not count, and its content does.
  CHECK(it.load(write_product_model(it.folder, "copy.onnx", filled_weight(2))).was_cached);
  const CachedProgram changed = it.load(write_product_model(it.folder, "model.onnx", filled_weight(3)));
  CHECK_FALSE(changed.was_cached);
  CHECK(it.result(changed) == 12);
  CHECK(it.notes.empty());
}

TEST_CASE("external data are part of the model", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2), "weights.bin");
  CHECK_FALSE(it.load(model).was_cached);
  CHECK(it.load(model).was_cached);
  write_product_model(it.folder, "model.onnx", filled_weight(3), "weights.bin");  // the model's own bytes are the same
  const CachedProgram changed = it.load(model);
  CHECK_FALSE(changed.was_cached);
  CHECK(it.result(changed) == 12);
  write_product_model(it.folder, "model.onnx", filled_weight(2), "weights.bin");
  const CachedProgram back = it.load(model);
  CHECK(back.was_cached);
  CHECK(it.result(back) == 8);
  fs::remove(it.folder.at("weights.bin"));
  CHECK_THROWS_AS(it.load(model), CompileError);
}

TEST_CASE("a text and the file of its constants are the model", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  const std::string text = it.folder.at("model.py"), constants = it.folder.at("model.safetensors");
  auto print = [&] { return run_relaxc({"fmt", model, "--constants", constants, "--inline", "4"}).out; };
  it.folder.write("model.py", print());
  REQUIRE(contains(it.folder.read("model.py"), "load_safetensors"));
  CHECK_FALSE(it.load(text).was_cached);
  CHECK(it.load(text).was_cached);
  write_product_model(it.folder, "model.onnx", filled_weight(3));
  const std::string same = print();
  REQUIRE(same == it.folder.read("model.py"));
  const CachedProgram changed = it.load(text);
  CHECK_FALSE(changed.was_cached);
  CHECK(it.result(changed) == 12);
}

TEST_CASE("each setting that changes the result has an artifact of its own", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  const std::string rules = it.folder.write("rules.py", "# none\n");
  std::set<std::string> artifacts;
  auto add = [&](const char* what, const std::function<void(CompileSettings&)>& change) {
    CompileSettings settings;
    change(settings);
    INFO(what);
    const CachedProgram loaded = it.load(model, settings);
    CHECK_FALSE(loaded.was_cached);
    CHECK(it.load(model, settings).was_cached);
    CHECK(artifacts.insert(loaded.artifact).second);
  };
  add("nothing", [](CompileSettings&) {});
  add("dims", [](CompileSettings& settings) { settings.dims = {{"n", 1}}; });
  add("other dims", [](CompileSettings& settings) { settings.dims = {{"n", 2}}; });
  std::map<std::string, std::string> texts = {{"target", "x86-64"}, {"passes", "kernels,lower"}, {"function", "main"}};
  for (const CompileOption& row : compile_options()) {
    auto set = [&](auto* value) {
      using T = std::remove_pointer_t<decltype(value)>;
      if constexpr (std::is_same_v<T, std::string>) *value = texts.at(row.name);
      if constexpr (!std::is_same_v<T, std::string>) *value = static_cast<T>(*value == T(1) ? 0 : 1);
    };
    add(row.name, [&](CompileSettings& settings) { std::visit(set, row.value(settings)); });
  }
  it.cache.rule_files = {rules};
  add("files of rules", [](CompileSettings&) {});
  it.folder.write("rules.py", "# others\n");
  add("the content of a file of rules", [](CompileSettings&) {});
}

TEST_CASE("nothing is kept where the compilation is to be seen", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  auto check = [&](const char* what, const std::function<void(CompileSettings&)>& change) {
    CompileSettings settings;
    change(settings);
    INFO(what);
    CHECK(it.result(it.load(model, settings)) == 8);
    CHECK(it.count() == 0);
  };
  check("interpreter", [](CompileSettings& settings) { settings.interpret.emplace(); });
  check("dumps", [&](CompileSettings& settings) { settings.runner.dump_dir = it.folder.at("dump"); });
  check("times", [](CompileSettings& settings) { settings.runner.time_passes = true; });
  check("verification", [](CompileSettings& settings) { settings.runner.verify_each = VerifyEach::kPass; });
  check("decisions",
        [](CompileSettings& settings) { settings.decided = [](const auto&, const auto&, const auto&) {}; });
  it.cache.folder = "";
  CHECK_FALSE(it.load(model).was_cached);
}

TEST_CASE("a damaged or foreign artifact is replaced with a note", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  const std::string other = it.load(write_product_model(it.folder, "other.onnx", filled_weight(5))).artifact;
  const std::string artifact = it.load(model).artifact;
  std::ifstream in(artifact, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  auto check = [&](const char* what, const std::string& content) {
    INFO(what);
    it.notes.clear();
    fs::remove(artifact);
    std::ofstream(artifact, std::ios::binary) << content;
    const CachedProgram again = it.load(model);
    CHECK_FALSE(again.was_cached);
    CHECK(it.result(again) == 8);
    REQUIRE(it.notes.size() == 1);
    CHECK(contains(it.notes[0], "note: an artifact in the cache is not used, and the model is compiled again: "));
    CHECK(it.load(model).was_cached);
    CHECK(it.notes.size() == 1);
  };
  check("empty", "");
  check("cut off", whole.substr(0, whole.size() / 2));
  for (size_t place : {size_t{100}, whole.size() / 2, whole.size() - 200}) {
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 1);
    check("a bit", flipped);
  }
  std::ifstream foreign(other, std::ios::binary);
  check("that of another model", {std::istreambuf_iterator<char>(foreign), {}});
  fs::remove(fs::path(artifact).replace_extension(".info"));
  CHECK_FALSE(it.load(model).was_cached);
}

TEST_CASE("what a compilation warned of is said again", "[tools]") {
  CachedModels it;
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  test::set_int(model.node("Relu", "x", "y"), "no_such_attribute", 1);
  const std::string file = it.folder.write("model.onnx", model.proto().SerializeAsString());
  size_t warnings = 0;
  CompileSettings settings;
  settings.warn = [&](const Diagnostic&) { ++warnings; };
  CHECK_FALSE(it.load(file, settings).was_cached);
  CHECK(warnings == 1);
  CHECK(it.warnings.empty());
  CHECK(it.load(file, settings).was_cached);
  CHECK(warnings == 1);
  REQUIRE(it.warnings.size() == 1);
  CHECK(contains(it.warnings[0], "attribute 'no_such_attribute' is not known for Relu"));
  CHECK(it.notes.empty());
}

TEST_CASE("the cache is bounded, and the artifact that was used least lately goes first", "[tools]") {
  CachedModels it;
  std::vector<std::string> models;
  for (int i = 0; i < 4; ++i)
    models.push_back(
        write_product_model(it.folder, fmt::format("{}.onnx", i), filled_weight(static_cast<float>(i + 1))));
  uint64_t bytes = 0;
  for (int i = 0; i < 3; ++i) bytes += fs::file_size(it.load(models[static_cast<size_t>(i)]).artifact);
  CHECK(it.load(models[0]).was_cached);  // models[1] is the oldest now
  it.cache.most_bytes = bytes + 100;
  CHECK_FALSE(it.load(models[3]).was_cached);
  CHECK(it.count() == 3);
  CHECK(it.load(models[0]).was_cached);
  CHECK(it.load(models[3]).was_cached);
  CHECK_FALSE(it.load(models[1]).was_cached);
}

namespace {

// y = last(softmax(x @ w))
std::string write_layers(const test::Folder& folder, const std::string& name, const std::string& last) {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  model.constant("w", filled_weight(2));
  model.node("MatMul", "x w", "product");
  model.node("Softmax", "product", "soft");
  model.node(last, "soft", "y");
  return folder.write(name, model.proto().SerializeAsString());
}

}  // namespace

TEST_CASE("a model that was changed compiles only what is new", "[tools]") {
  CachedModels it;
  const std::string cache = it.cache.folder, model = write_layers(it.folder, "model.onnx", "Exp");
  // Returns how many results the cache has more than before.
  auto compile = [&](const std::string& file, const char* artifact) {
    auto count = [&] { return fs::exists(cache) ? std::distance(fs::directory_iterator(cache), {}) : 0; };
    const auto before = count();
    const Outcome outcome = run_relaxc({"compile", file, "-o", it.folder.at(artifact), "--cache", cache});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return count() - before;
  };
  const auto all = compile(model, "first.so");
  CHECK(all > 0);
  CHECK(compile(model, "second.so") == 0);
  CHECK(it.folder.read("first.so") == it.folder.read("second.so"));
  const auto added = compile(write_layers(it.folder, "other.onnx", "Sin"), "other.so");
  CHECK(added > 0);
  CHECK(added < all);
  // Returns how many kernels -v says that it compiled, and how many it reused.
  auto kernels = [&](const std::string& file) {
    const Outcome told = run_relaxc({"compile", file, "-o", it.folder.at("told.so"), "--cache", cache, "-v"});
    const auto found = test::matches(told.err, "\n([0-9]+) kernels compiled and ([0-9]+) reused in ");
    INFO(told.err);
    REQUIRE(found.size() == 1);
    return std::pair(std::stoi(found[0][1]), std::stoi(found[0][2]));
  };
  const auto again = kernels(model), new_kernel = kernels(write_layers(it.folder, "third.onnx", "Cos"));
  CHECK(again.first == 0);
  CHECK(again.second > 1);
  CHECK(new_kernel == std::pair(1, again.second - 1));
  // A result is looked for only where all passes run out of sight.
  CHECK_FALSE(
      contains(run_relaxc({"compile", model, "-o", it.folder.at("timed.so"), "--cache", cache, "--time-passes"}).err,
               " 0.00 ms  apply_rules"));
  // Damaged ones are made again.
  const auto kept = std::distance(fs::directory_iterator(cache), {});
  for (const auto& file : fs::directory_iterator(cache)) std::ofstream(file.path(), std::ios::trunc) << "damaged";
  CHECK(compile(model, "third.so") == 0);
  CHECK(it.folder.read("first.so") == it.folder.read("third.so"));
  size_t damaged = 0;
  for (const auto& file : fs::directory_iterator(cache)) damaged += fs::file_size(file) == std::strlen("damaged");
  CHECK(static_cast<std::ptrdiff_t>(damaged) == kept - all);
  CHECK(clear_cache(cache) == 0);  // of artifacts
  CHECK(fs::is_empty(cache));
}

TEST_CASE("kernels are kept up to a limit", "[tools]") {
  CachedModels it;
  const std::string key = "key";
  auto store = [&] { return codegen::kernel_files({it.cache.folder, 1000, 3}); };
  store()->keep(key, std::string(100, 'a'));
  CHECK(store()->find(key) == std::string(100, 'a'));
  CHECK_FALSE(store()->find("another"));
  store()->keep("large", std::string(2000, 'a'));
  CHECK_FALSE(store()->find("large"));
  for (int i = 0; i < 5; ++i) store()->keep(fmt::format("{}", i), "small");
  CHECK(cached_kernels(it.cache.folder).files == 3);
  CHECK(store()->find("4"));
  CHECK_FALSE(store()->find("0"));
}

TEST_CASE("-v tells what came from the cache, and why something did not", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  auto told = [&](std::vector<std::string> words, const std::string& command = "run") {
    words.insert(words.begin(), {command, model, "-v", "--cache", it.cache.folder});
    return run_relaxc(words).err;
  };
  CHECK(contains(told({}), "model.onnx was compiled, because the model was not compiled before"));
  const std::string hit = told({});
  INFO(hit);
  CHECK(contains(hit, "model.onnx is in the cache: " + it.cache.folder + "/"));
  CHECK(contains(hit, ".so (0.0 MB, compiled 0 min ago)"));
  CHECK_FALSE(test::matches(hit, "\nthe run computes from [0-9]+ ms after the start of the command\n").empty());
  CHECK(contains(told({"-O", "1"}),
                 ".so, which is of other contents of the model, other settings or another build of relaxc"));
  CHECK(contains(told({"--interpret"}), "was compiled, because the interpreter runs the kernels"));
  CHECK(contains(told({"--no-cache"}), "was compiled, because no cache is used"));
  CHECK(contains(told({"-o", it.folder.at("model.so")}, "compile"), "0 are new"));
  for (const CachedArtifact& artifact : cached_artifacts(it.cache.folder)) fs::remove(artifact.path);
  CHECK(contains(told({}), "was compiled, because the artifact was removed, or files beside the model have changed"));
  CHECK(contains(run_relaxc({"cache", "--cache", it.cache.folder}).out, "of at most 16384 files of kernels, "));
}

TEST_CASE("a folder that others may write to is not used", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  CHECK_FALSE(it.load(model).was_cached);
  chmod(it.cache.folder.c_str(), 0777);
  CHECK_FALSE(it.load(model).was_cached);
  REQUIRE(it.warnings.size() == 1);  // one fault, one warning
  CHECK(contains(it.warnings[0], "other users may write to the folder"));
  CHECK(it.notes.empty());
  chmod(it.cache.folder.c_str(), 0700);
  CHECK(it.load(model).was_cached);
  it.cache.folder = it.folder.at("model.onnx/below_a_file");
  CHECK(it.result(it.load(model)) == 8);
}

TEST_CASE("a cache that cannot be written gets one warning, and the command goes on", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  // The limit of file sizes stands for a full disk: 512 bytes.
  const Outcome run = test::run_program(
      {"sh", "-c", fmt::format("ulimit -f 1; exec {} run {} --cache {}", RELAXC_TOOL, model, it.cache.folder)}, 120);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "y: float32[1, 3]"));
  CHECK(test::matches(run.err, "(warning|note): ").size() == 1);
  CHECK(contains(run.err, "warning: nothing more is kept in the cache '" + it.cache.folder + "': cannot write '"));
  CHECK(contains(run.err,
                 "File too large; make room there (relaxc cache clear), or name another folder (--cache DIR, "
                 "RELAXC_CACHE)\n"));
  const std::string below_a_file = it.folder.at("model.onnx/cache");
  const Outcome compiled = run_relaxc({"compile", model, "-o", it.folder.at("model.so"), "--cache", below_a_file});
  INFO(compiled.err);
  CHECK(compiled.exit_code == 0);
  CHECK(test::matches(compiled.err, "(warning|note): ").size() == 1);
  CHECK(contains(compiled.err, "warning: nothing more is kept in the cache '" + below_a_file + "': "));
  CHECK(
      contains(run_relaxc({"cache", "--cache", below_a_file}).out,
               "problem: compiled models are not kept: '" + model + "' is not a folder; --cache DIR or RELAXC_CACHE"));
}

TEST_CASE("two processes may compile the same model at once", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2));
  size_t ended_right = 0;
  test::run_forked(
      6, 3, 120,
      [&](int) { return run_relaxc({"run", model, "--cache", it.cache.folder}).exit_code == 0 ? "right" : "wrong"; },
      [&](int, const Outcome& outcome) { ended_right += outcome.out == "right"; });
  CHECK(ended_right == 6);
  CHECK(it.count() == 1);
}

TEST_CASE("relaxc cache lists and clears what run and bench keep", "[tools]") {
  CachedModels it;
  const std::string model = write_product_model(it.folder, "model.onnx", filled_weight(2)), cache = it.cache.folder;
  CHECK(contains(run_relaxc({"cache", "--cache", cache}).out, ": 0 artifacts"));
  REQUIRE(run_relaxc({"run", model, "--cache", cache}).exit_code == 0);
  CHECK(contains(run_relaxc({"bench", model, "--cache", cache, "--runs", "3"}).out, " s (from the cache)\n"));
  CHECK_FALSE(
      contains(run_relaxc({"bench", model, "--cache", cache, "--runs", "3", "--no-cache"}).out, "from the cache"));
  const std::string listed = run_relaxc({"cache", "--cache", cache}).out;
  CHECK(contains(listed, model));
  CHECK(contains(listed, ": 1 artifact, "));
  const std::string kept = it.cache.folder + "/mine.txt";
  std::ofstream(kept) << "mine";
  CHECK(contains(run_relaxc({"cache", "clear", "--cache", cache}).out, ": 1 artifact of "));
  CHECK(it.count() == 0);
  CHECK(fs::exists(kept));
  setenv("RELAXC_CACHE", it.folder.at("stated").c_str(), 1);
  REQUIRE(run_relaxc({"run", model}).exit_code == 0);
  CHECK(contains(run_relaxc({"cache"}).out, it.folder.at("stated") + ": 1 artifact, "));
  setenv("RELAXC_CACHE", "", 1);
  CHECK(contains(run_relaxc({"cache"}).err, "the cache is off, as RELAXC_CACHE is empty"));
}
