// Structured mutation of ONNX models: attributes, dims, dtypes, edges, whole nodes and tensors.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace relaxc::test {

// Works by protobuf's reflection, so that every field of every message can change, also those of later ONNX versions.
// Replacements come from the models seen before: names of the same field, messages of the same type.
class ModelMutator {
 public:
  // One to four changes.
  void mutate(onnx::ModelProto& model, std::mt19937_64& random);

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  using Random = std::mt19937_64;
  struct Site {
    Message* message;
    const Field* field;
  };
  void learn(const Message& message, Random& random);
  void collect(Message& message, std::vector<Site>& sites, Random& random) const;
  void change(const Site& site, Random& random) const;
  void change_repeated(const Site& site, Random& random) const;
  // Sets element `index` of the field, or the field if it is not repeated; index -1 adds an element.
  void set(const Site& site, int index, Random& random) const;
  std::string some_string(const Field& field, const std::string& old, Random& random) const;

  std::map<std::string, std::vector<std::string>> strings_;                // by kind of name
  std::map<std::string, std::vector<std::shared_ptr<Message>>> messages_;  // by type
};

}  // namespace relaxc::test
