// Values of all kinds on the command line: read from text and files, random, printed, and as tensors.
#pragma once
#include <functional>
#include <random>

#include "tools/dims.h"
#include "vm/program.h"

namespace relaxc::tools {

// A value as it was written: an atom (a number, a file's name, 'text', True, None, _ for a random one), a list in
// brackets, float32[[1, 2]] with its dtype, or a tuple in parentheses. A sequence is a list of its items, and a map the
// tuple of its keys and values.
struct WrittenValue {
  char open = 0;     // '[', '(', or 0 for an atom
  std::string text;  // of an atom; the dtype before a list, if any
  std::vector<WrittenValue> items = {};
  std::optional<Tensor> tensor = {};    // that of a file, once it is read
  std::optional<vm::Value> value = {};  // of a file that holds another value
};
// Throws a CompileError where brackets do not match or are nested too deep.
WrittenValue parse_value(std::string_view text);
// Returns an atom that stands for the value of a file.
WrittenValue written_value(vm::Value value);

// Returns the same numbers in another dtype, and notes it. Throws a CompileError where an element is no value of it.
Tensor with_dtype(const Tensor& tensor, DType dtype, const std::string& input, std::vector<std::string>& notes);

// Returns whether the name is that of an image file: .png, .jpg, .jpeg, .bmp, .webp, .tif, .tiff, .ppm, .pgm.
bool is_picture(const std::string& path);
// Reads an image for an input (tools/picture.h), and adds notes.
using PictureReader =
    std::function<Tensor(const std::string& path, const vm::ValueInfo& info, std::vector<std::string>& notes)>;

// What a program can read, beside .npy files.
struct FileReaders {
  std::function<Tensor(const std::string& path, std::optional<DType> expected)> tensor_pb = nullptr;
  std::function<vm::Value(const std::string& path, const vm::ValueInfo& info)> value_pb = nullptr;
  PictureReader picture = nullptr;
};

// The integers that random inputs have. 0 and 1 are right as flags, masks, and indices of short axes.
struct RandomIntegers {
  int64_t least = 0, most = 1;
};

// Makes the inputs of a function from those that are given and, for the others, at random.
class InputMaker {
 public:
  InputMaker(std::map<std::string, int64_t> dims, uint64_t seed, FileReaders readers = {}, RandomIntegers integers = {})
      : dims_(std::move(dims)), random_(seed), integers_(integers), readers_(std::move(readers)) {}
  // There is one item per input; _ stands for a random one. Throws a CompileError that names the input.
  std::vector<vm::Value> make(const std::vector<vm::ValueInfo>& inputs, std::vector<WrittenValue> given);
  // Returns what was converted, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Tensor read_file(const std::string& path, const vm::ValueInfo& info);
  void learn(WrittenValue& given, const vm::ValueInfo& info);
  void need(const vm::ValueInfo& info);
  vm::Value build(const WrittenValue& given, const vm::ValueInfo& info);
  vm::Value random_value(const vm::ValueInfo& info);
  vm::Value untyped(const WrittenValue& given);
  Tensor listed_tensor(const WrittenValue& given, const vm::ValueInfo& info) const;
  std::optional<int64_t> as_integer(const WrittenValue& given) const;
  std::optional<double> as_number(const WrittenValue& given) const;
  int64_t integer(const WrittenValue& given) const;
  double number(const WrittenValue& given) const;
  bool is_dim(const vm::ValueInfo& info) const { return info.kind == vm::ValueKind::kInt && !info.name.empty(); }

  DimSolver dims_;
  std::mt19937_64 random_;
  RandomIntegers integers_;
  FileReaders readers_;
  std::vector<std::string> notes_;
  std::string input_;  // what messages name
};

// Returns "[[1, 2], ['a', 'b']]": all elements of a tensor.
std::string elements_text(const Tensor& tensor);

// Returns the parts of a result in order, where tuples are flattened, with the names that the function declares.
struct NamedValue {
  std::string name;
  vm::Value value;
  std::optional<DType> dtype = {};  // of a scalar, where it is declared
  bool is_optional = false;
};
std::vector<NamedValue> flat_results(const vm::Value& result, const std::vector<vm::ValueInfo>& outputs);
// Returns the tensor of the same numbers: a shape is an int64 vector, a scalar has rank 0. Returns nullopt for text,
// functions and other values.
std::optional<Tensor> as_tensor(const NamedValue& value);
// Returns "name: float32[1, 10]  min ... max ... mean ...  [0.1, 0.2, ...]", or the value of another kind. The items of
// a sequence follow in lines of their own.
std::string summary(const NamedValue& value);
// Returns a line for each of the `count` largest elements of each row (of the last dim) of a tensor: its position, its
// label where there is one, and the element; "" for another value.
std::string largest_elements(const NamedValue& value, int64_t count, const std::vector<std::string>& labels);

}  // namespace relaxc::tools
