// A host that has the libraries which relaxc uses already, in versions of its own. Usage: crowded MODEL
//
// It reads the model by ONNX and protobuf itself. With STATIC_PROTOBUF it uses protobuf alone, and with POISONED, a sum
// of 1 for protobuf, 2 for LLVM and 4 for ONNX, it exports functions of these by their names, which end the process
// when they are called. With OTHER_LLVM, a part of a file's name, it is linked to a library of LLVM of that name and
// uses it. With OWN_ALLOCATOR it replaces operator new.
#include <dlfcn.h>
#include <relaxc/relaxc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/embed/own_allocator.h"

#ifdef POISONED
#define POISON(name, symbol)                                 \
  extern "C" void name() __asm__(symbol);                    \
  extern "C" void name() {                                   \
    std::fputs("the host's " symbol " is called\n", stderr); \
    std::abort();                                            \
  }
#if POISONED & 1
POISON(parse, "_ZN6google8protobuf11MessageLite20ParseFromCodedStreamEPNS0_2io16CodedInputStreamE")
POISON(register_file, "_ZN6google8protobuf8internal14AddDescriptorsEPKNS1_15DescriptorTableE")
POISON(arena, "_ZN6google8protobuf8internal15ThreadSafeArena27AllocateAlignedWithCleanupFallbackEmPKSt9type_info")
#endif
#if POISONED & 2
POISON(context, "_ZN4llvm11LLVMContextC1Ev")
POISON(module, "_ZN4llvm6ModuleC1ENS_9StringRefERNS_11LLVMContextE")
#endif
#if POISONED & 4
POISON(model, "_ZN4onnx10ModelProtoD1Ev")
#endif
static int nodes_of(const char*) { return 0; }
#elif defined STATIC_PROTOBUF
#include <google/protobuf/struct.pb.h>

static int nodes_of(const char* path) {
  google::protobuf::Struct written, read;
  (*written.mutable_fields())[path].set_number_value(1);
  return read.ParseFromString(written.SerializeAsString()) ? read.fields_size() : -1;
}
#else
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <fstream>

static int nodes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return -1;
  onnx::checker::check_model(model);
  return model.graph().node_size();
}
#endif

#ifdef OTHER_LLVM
extern "C" void* LLVMContextCreate();
extern "C" void* LLVMModuleCreateWithNameInContext(const char* name, void* context);
extern "C" char* LLVMPrintModuleToString(void* module);
extern "C" void LLVMContextDispose(void* context);

// Uses the host's LLVM, and returns whether it is the other one.
static bool uses_other_llvm() {
  void* context = LLVMContextCreate();
  void* module = LLVMModuleCreateWithNameInContext("of the host", context);
  char* text = LLVMPrintModuleToString(module);
  const bool is_named = std::strstr(text, "of the host") != nullptr;
  std::free(text);
  LLVMContextDispose(context);
  Dl_info owner{};
  return is_named && dladdr(reinterpret_cast<void*>(&LLVMContextCreate), &owner) != 0 &&
         std::strstr(owner.dli_fname, OTHER_LLVM) != nullptr;
}
#else
static bool uses_other_llvm() { return true; }
#endif

int main(int, char** argv) {
  if (!uses_other_llvm()) return std::fputs("the host's LLVM is not the other one\n", stderr), 1;
  const int before = nodes_of(argv[1]);
  relaxc_program* program = nullptr;
  relaxc_session* session = nullptr;
  relaxc_compile_options options{};
  options.size = sizeof options;
  options.cache = "";
  if (relaxc_compile(argv[1], &options, &program) || relaxc_session_new(program, nullptr, &session))
    return std::fprintf(stderr, "%s\n", relaxc_error_message()), 1;
  static float pixels[64];
  int64_t shape[] = {1, 1, 8, 8};
  DLTensor input{pixels, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLManagedTensor* output = nullptr;
  if (relaxc_run(session, nullptr, &input, 1, &output, 1))
    return std::fprintf(stderr, "%s\n", relaxc_error_message()), 1;
  if (nodes_of(argv[1]) != before || !uses_other_llvm()) return 1;
  std::printf("%d classes\n", static_cast<int>(output->dl_tensor.shape[1]));
  output->deleter(output);
  relaxc_session_release(session);
  relaxc_program_release(program);
}
