// A host of a program that calls a builtin of librelaxc_builtins.so, by C++ or, with C_INTERFACE, by C. The program has
// inputs float32[n] and bool[], and fails where the second one is false. With OWN_ALLOCATOR the host replaces operator
// new. Usage: rare_host ARTIFACT [FOLDER], which becomes the current one first
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <initializer_list>

#include "tests/embed/own_allocator.h"

static bool changes_folder(char** argv) { return !argv[2] || chdir(argv[2]) == 0; }

#ifdef C_INTERFACE
#include <relaxc/relaxc.h>

static int fail() { return std::fprintf(stderr, "%s\n", relaxc_error_message()), 1; }

int main(int, char** argv) {
  if (!changes_folder(argv)) return 2;
  relaxc_program* program = nullptr;
  relaxc_session* session = nullptr;
  if (relaxc_load(argv[1], nullptr, &program) || relaxc_session_new(program, nullptr, &session)) return fail();
  for (bool condition : {true, false, true}) {
    float x[2] = {1, 2};
    int64_t dims[1] = {2};
    const DLTensor inputs[] = {{x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, dims, nullptr, 0},
                               {&condition, {kDLCPU, 0}, 0, {kDLBool, 8, 1}, nullptr, nullptr, 0}};
    DLManagedTensor* output = nullptr;
    const relaxc_status status = relaxc_run(session, nullptr, inputs, 2, &output, 1);
    std::printf("%d %s\n", static_cast<int>(status), status == RELAXC_OK ? "right" : relaxc_error_message());
    if (output) output->deleter(output);
  }
  relaxc_session_release(session);
  relaxc_program_release(program);
}
#else
#include <relaxc/runtime.h>

static void run(relaxc::Session& session, bool condition) {
  try {
    const auto x = relaxc::Tensor::of<float>({2}, relaxc::kFloat32, {1, 2});
    session.run({x, relaxc::Tensor::of<bool>({}, relaxc::kBool, {condition})});
    std::puts("0 right");
  } catch (const relaxc::RuntimeError& error) {
    std::printf("4 %s\n", error.what());
  }
}

int main(int, char** argv) {
  if (!changes_folder(argv)) return 2;
  try {
    relaxc::Session session(relaxc::Program::load(argv[1]));
    for (bool condition : {true, false, true}) run(session, condition);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
#endif
