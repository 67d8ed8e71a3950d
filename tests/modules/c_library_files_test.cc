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

// In another process, which ends without the dynamic linker: that would call what the library had to do at the end.
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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the granularity of the file system's clock
    write(library, other);
    text += error_of([&] { result_of(*first); }) + "\n";
    first.reset();
    const Program second = program(), third = program();
    return text + result_of(second) + result_of(third);
  };
  write(folder + "/results", "crashed");
  const pid_t child = fork();
  if (child == 0) {
    write(folder + "/results", results());
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(matches(text_of_file(folder + "/results"),
                "3.0*\n.*libmine.so' was written to while it was in use; load it again.*\n4.0*\n4.0*\n")
            .size() == 1);
}

}  // namespace relaxc::test
