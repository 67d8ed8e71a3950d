// Files of libraries of C kernels that change while a program uses them.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "codegen/compile.h"
#include "tests/modules/c_library.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {
using namespace c_library;

// Runs the function in a process that then ends as programs do: the dynamic linker calls the libraries for the last
// time. Returns what the function returned; "" where the process died.
std::string in_a_process(const std::string& folder, const std::function<std::string()>& fn) {
  const pid_t child = fork();
  if (child == 0) {
    write(folder + "/results", fn());
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text_of_file(folder + "/results") : "";
}

void write_over(const std::string& path, const std::string& content) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the granularity of the file system's clock
  write(path, content);
}
}  // namespace

TEST_CASE("a library of kernels that has replaced an open one is another library", "[modules]") {
  const std::string folder = new_folder("replaced");
  const std::string twice = std::string(kHead) + kByName;
  std::string thrice = twice;
  thrice.replace(thrice.find("2 * x"), 1, "3");
  const std::string library = library_of(folder, "mine", twice), other = library_of(folder, "other", thrice);
  write(folder + "/module.py", kModule);
  auto compiled = [&] {
    CompileSettings settings;
    settings.libraries = {vm::UserLibrary::open(library)};
    return compile_file(folder + "/module.py", settings);
  };
  auto result_of = [](Session& session) {
    return session.run({Tensor::of<float>({2}, kFloat32, {1, -2})}).at(0).as_double(0);
  };
  compiled().write(folder + "/module.so");
  Session first(compiled().load()), loaded(Program::load(folder + "/module.so"));
  std::filesystem::rename(other, library);
  Session second(compiled().load()), loaded_again(Program::load(folder + "/module.so"));
  for (Session* session : {&first, &loaded}) CHECK(result_of(*session) == 3);
  for (Session* session : {&second, &loaded_again}) CHECK(result_of(*session) == 4);
}

TEST_CASE("a library of kernels that was written over is an error of runs, and another one when opened", "[modules]") {
  const std::string folder = new_folder("written_over");
  const std::string twice = std::string(kHead) + kByName, library = library_of(folder, "mine", twice);
  std::string thrice = twice;
  thrice.replace(thrice.find("2 * x"), 1, "3");
  const std::string other = text_of_file(library_of(folder, "other", thrice));
  write(folder + "/module.py", kModule);
  auto results = [&] {
    auto program = [&] {
      CompileSettings settings;
      settings.libraries = {vm::UserLibrary::open(library)};
      return compile_file(folder + "/module.py", settings).load();
    };
    const std::vector<Tensor> x = {Tensor::of<float>({2}, kFloat32, {1, -2})};
    auto result_of = [&](const Program& of) { return std::to_string(Session(of).run(x).at(0).as_double(0)) + "\n"; };
    std::optional first = program();
    std::string text = result_of(*first);
    const auto kept = vm::UserLibrary::open(library);
    write_over(library, other);
    text += error_of([&] { result_of(*first); }) + "\n";
    first.reset();
    const Program second = program(), third = program();
    const auto one = vm::UserLibrary::open(library), same = vm::UserLibrary::open(folder + "/./libmine.so");
    text += kept->rows()[0].kernel != one->rows()[0].kernel ? "another\n" : "";
    text += one->rows()[0].kernel == same->rows()[0].kernel ? "same\n" : "";
    return text + result_of(second) + result_of(third);
  };
  CHECK(matches(in_a_process(folder, results),
                "3.0*\n.*libmine.so' was written to while it was in use; load it again.*\nanother\nsame\n4.0*\n4.0*\n")
            .size() == 1);
}

TEST_CASE("a process ends where an artifact with linked code was written over or cut off", "[modules]") {
  const std::string folder = new_folder("linked_over"), object = folder + "/mine.o", artifact = folder + "/module.so";
  library_of(folder, "mine",
             std::string(kHead) + "\n__attribute__((destructor)) static void end(void) {}\n#define static\n" + kByName);
  REQUIRE(run_program({"/usr/bin/cc", "-c", "-fPIC", "-I", folder + "/include", folder + "/mine.c", "-o", object}, 60)
              .exit_code == 0);
  write(folder + "/module.py", R"(
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((n,), "float32"), tir_vars=R.shape([n]))
    return y
)");
  CompileSettings settings;
  settings.linked = {object};
  const CompiledModule compiled = compile_file(folder + "/module.py", settings);
  for (const std::string& content : {std::string(), std::string(100'000, '\0')}) {
    compiled.write(artifact);
    auto run = [&] {
      Session session(Program::load(artifact));
      const std::vector<Tensor> x = {Tensor::of<float>({2}, kFloat32, {1, -2})};
      const std::string before = std::to_string(session.run(x).at(0).as_double(0)) + "\n";
      write_over(artifact, content);
      return before + error_of([&] { session.run(x); });
    };
    CHECK(matches(in_a_process(folder, run), "2.0*\n.*module.so' .* while it was in use; load it again.*").size() == 1);
  }
}

}  // namespace relaxc::test
