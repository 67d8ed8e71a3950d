// The structs behind the handles of the C interface, and the boundary that no exception crosses.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <forward_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/failure.h"
#include "api/relaxc.h"
#include "vm/error.h"
#include "vm/program.h"

namespace relaxc::api {

using relaxc::throw_usage_error;
using relaxc::UsageError;

template <class T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) throw_usage_error("{} is a null pointer", name);
  return *pointer;
}

inline void check_count(int32_t count, const void* at, const char* what) {
  if (count < 0 || (count > 0 && at == nullptr))
    throw_usage_error("{}: there are {}{}", what, count, at ? "" : ", at a null pointer");
}

inline void check_flag(int64_t value, const char* name) {
  if (value != 0 && value != 1) throw_usage_error("{} is {}, expected 0 or 1", name, value);
}

// Notes the exception that is being handled as the last error of the thread, and returns its status.
relaxc_status note_error() noexcept;

// Runs work(); an exception becomes a status.
template <class Work>
relaxc_status call(Work&& work) noexcept {
  try {
    work();
    return RELAXC_OK;
  } catch (...) {
    return note_error();
  }
}

// The sizes that a struct of options has had since its first version. Members are added at its end only.
template <class T>
inline constexpr auto kSizesOf = std::array{sizeof(T)};
template <>
inline constexpr auto kSizesOf<relaxc_compile_options> =
    std::array{offsetof(relaxc_compile_options, range_names), offsetof(relaxc_compile_options, precision),
               offsetof(relaxc_compile_options, in_place), offsetof(relaxc_compile_options, type_names),
               sizeof(relaxc_compile_options)};

template <>
inline constexpr auto kSizesOf<relaxc_session_options> =
    std::array{offsetof(relaxc_session_options, log), sizeof(relaxc_session_options)};

// Reports a size that ends within a member, before the first version does, or that a struct of later libraries would
// not have either, and a later member that has a value: `bytes` are the struct's.
void check_size(const char* name, std::span<const size_t> sizes, size_t size, const std::byte* bytes);

// Returns the struct of options that the host filled in, with the members that its version lacks as zeros.
template <class T>
T options_of(const T* options, const char* name) {
  T result{};
  if (options == nullptr) return result;
  check_size(name, kSizesOf<T>, options->size, reinterpret_cast<const std::byte*>(options));
  std::memcpy(&result, options, std::min(options->size, sizeof(T)));
  return result;
}

// The declarations of a function's values in the form of C. The strings are in `texts`, which does not move them.
class Declarations {
 public:
  explicit Declarations(const std::vector<vm::ValueInfo>& infos) { infos_ = of(infos); }
  Declarations(const Declarations&) = delete;
  Declarations& operator=(const Declarations&) = delete;
  const std::vector<relaxc_value_info>& infos() const { return *infos_; }

 private:
  const std::vector<relaxc_value_info>* of(const std::vector<vm::ValueInfo>& infos);
  const char* text(std::string of) { return texts_.emplace_front(std::move(of)).c_str(); }
  std::forward_list<std::string> texts_;
  std::forward_list<std::vector<relaxc_dim>> dims_;
  std::forward_list<std::vector<relaxc_value_info>> lists_;
  const std::vector<relaxc_value_info>* infos_ = nullptr;
};

// Returns the function of a name, null for the default one. An unknown one is a UsageError.
const vm::Function& function_of(const Program& program, const char* name);

DLDataType dlpack_dtype(DType dtype);
// Dtype and shape of a tensor that has passed the checks; tensors of later runs with the same ones share them.
struct Form {
  DLDataType stated{};
  DType dtype;
  std::shared_ptr<const std::vector<int64_t>> shape = nullptr;
  int64_t bytes = 0;
};
// Returns the host's tensor as one of ours, lent where it is dense, else copied, to the session's memory where there is
// one. `last` is the form of the tensor that had this place in the last run, and becomes that of this one.
Tensor tensor_of(const DLTensor& tensor, const char* what, Form& last, Session* session = nullptr);
inline Tensor tensor_of(const DLTensor& tensor, const char* what) {
  Form none;
  return tensor_of(tensor, what, none);
}
// Returns whether elements lie one after the other in row-major order.
bool is_dense(const DLTensor& tensor);
// Copies the elements of a dense tensor to a strided one of the same shape, or from it.
void copy_to(const Tensor& from, const DLTensor& to);

// Loads an artifact of a file. The program has one owner.
relaxc_program* load_file(const std::string& path, const relaxc_load_options& options);

}  // namespace relaxc::api

struct relaxc_program {
  explicit relaxc_program(relaxc::Program loaded);

  struct Function {
    explicit Function(const relaxc::vm::Function& of) : inputs(of.inputs), outputs(of.outputs) {}
    relaxc::api::Declarations inputs, outputs;
  };
  const Function& function(const char* name) const;

  std::atomic<int> owners{1};
  relaxc::Program program;
  std::vector<std::unique_ptr<const Function>> functions;  // as those of the executable
  std::vector<const char*> names;                          // of the public ones
};

struct relaxc_any {
  relaxc::vm::Value value;
  std::string description = {};
  bool is_copy_of_lent = false;  // a tensor that the host meant to lend, whose elements had to be copied
};
