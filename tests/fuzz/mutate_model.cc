#include "tests/fuzz/mutate_model.h"

#include <google/protobuf/descriptor.h>

#include <limits>

namespace relaxc::test {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Random = std::mt19937_64;

constexpr size_t kMostRemembered = 400;  // of a kind

template <class T>
T pick(const std::vector<T>& choices, Random& random) {
  return choices[random() % choices.size()];
}

// The names of values are one kind, wherever they stand; other strings stay with their field.
std::string kind_of(const FieldDescriptor& field) {
  const std::string& name = field.full_name();
  bool names_value = name == "onnx.NodeProto.input" || name == "onnx.NodeProto.output" ||
                     name == "onnx.ValueInfoProto.name" || name == "onnx.TensorProto.name";
  return names_value ? "value" : name;
}

int64_t some_int(int64_t old, Random& random) {
  using Limits = std::numeric_limits<int64_t>;
  static const std::vector<int64_t> kEdges = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              7,
                                              8,
                                              16,
                                              17,
                                              64,
                                              -1,
                                              -2,
                                              -3,
                                              -5,
                                              1000,
                                              1 << 16,
                                              1 << 20,
                                              1 << 30,
                                              INT32_MAX,
                                              INT32_MIN,
                                              int64_t{1} << 33,
                                              int64_t{1} << 62,
                                              Limits::max(),
                                              Limits::min(),
                                              Limits::max() - 1,
                                              -(int64_t{1} << 40)};
  auto wrapping = [](int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); };
  if (random() % 4 == 0) return wrapping(old, random() % 2 ? 1 : ~uint64_t{0});
  return random() % 3 ? kEdges[random() % 14] : pick(kEdges, random);
}

double some_float(Random& random) {
  static const std::vector<double> kEdges = {0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.5,
                                             2,
                                             1.5,
                                             1e-7,
                                             1e-40,
                                             1e30,
                                             -1e30,
                                             std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN()};
  return pick(kEdges, random);
}

}  // namespace

void ModelMutator::learn(const Message& message, Random& random) {
  auto remember = [&](auto& pool, auto value) {
    if (pool.size() < kMostRemembered) {
      pool.push_back(std::move(value));
    } else if (random() % 16 == 0) {
      pool[random() % pool.size()] = std::move(value);
    }
  };
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        std::string text = field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                : reflection.GetString(message, field);
        remember(strings_[kind_of(*field)], text);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& inner = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                    : reflection.GetMessage(message, field);
        if (inner.ByteSizeLong() < 2000) {
          std::shared_ptr<Message> copy(inner.New());
          copy->CopyFrom(inner);
          remember(messages_[inner.GetTypeName()], copy);
        }
        learn(inner, random);
      }
    }
  }
}

// Every field that is set, and a few of those that are not.
void ModelMutator::collect(Message& message, std::vector<Site>& sites, Random& random) const {
  const Reflection& reflection = *message.GetReflection();
  const auto& descriptor = *message.GetDescriptor();
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const FieldDescriptor* field = descriptor.field(f);
    int count = field->is_repeated() ? reflection.FieldSize(message, field) : reflection.HasField(message, field);
    if (count > 0 || random() % 32 == 0) sites.push_back({&message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    for (int i = 0; i < count; ++i) {
      collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                   : *reflection.MutableMessage(&message, field),
              sites, random);
    }
  }
}

std::string ModelMutator::some_string(const Field& field, const std::string& old, Random& random) const {
  auto pool = strings_.find(kind_of(field));
  uint64_t choice = random() % 16;
  if (choice == 0) return {};
  if (pool != strings_.end() && choice < 13) return pick(pool->second, random);
  std::string text = old;
  if (!text.empty() && choice == 13) text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
  if (!text.empty() && choice == 14) text.resize(random() % text.size());
  if (choice == 15) text += static_cast<char>(random());
  return text;
}

void ModelMutator::set(const Site& site, int index, Random& random) const {
  Message* m = site.message;
  const FieldDescriptor* field = site.field;
  const Reflection& r = *m->GetReflection();
  bool repeated = field->is_repeated();
#define RELAXC_SET(Type, value)                        \
  if (!repeated) {                                     \
    auto old = r.Get##Type(*m, field);                 \
    r.Set##Type(m, field, value);                      \
  } else if (index < 0) {                              \
    decltype(r.GetRepeated##Type(*m, field, 0)) old{}; \
    r.Add##Type(m, field, value);                      \
  } else {                                             \
    auto old = r.GetRepeated##Type(*m, field, index);  \
    r.SetRepeated##Type(m, field, index, value);       \
  }                                                    \
  break
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      RELAXC_SET(Int32, static_cast<int32_t>(random() % 4 ? random() % 18 : some_int(old, random)));
    case FieldDescriptor::CPPTYPE_INT64:
      RELAXC_SET(Int64, some_int(old, random));
    case FieldDescriptor::CPPTYPE_UINT32:
      RELAXC_SET(UInt32, static_cast<uint32_t>(some_int(old, random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      RELAXC_SET(UInt64, static_cast<uint64_t>(some_int(static_cast<int64_t>(old), random)));
    case FieldDescriptor::CPPTYPE_FLOAT:
      RELAXC_SET(Float, ((void)old, static_cast<float>(some_float(random))));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      RELAXC_SET(Double, ((void)old, some_float(random)));
    case FieldDescriptor::CPPTYPE_BOOL:
      RELAXC_SET(Bool, !old);
    case FieldDescriptor::CPPTYPE_ENUM:
      RELAXC_SET(EnumValue, ((void)old, static_cast<int>(random() % 16)));
    case FieldDescriptor::CPPTYPE_STRING:
      RELAXC_SET(String, some_string(*field, old, random));
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* place = !repeated   ? r.MutableMessage(m, field)
                       : index < 0 ? r.AddMessage(m, field)
                                   : r.MutableRepeatedMessage(m, field, index);
      auto pool = messages_.find(place->GetTypeName());
      if (pool != messages_.end()) place->CopyFrom(*pick(pool->second, random));
    }
  }
#undef RELAXC_SET
}

void ModelMutator::change_repeated(const Site& site, Random& random) const {
  const Reflection& r = *site.message->GetReflection();
  int count = r.FieldSize(*site.message, site.field);
  uint64_t choice = random() % 8;
  if (count == 0 || choice == 0) return set(site, -1, random);
  int index = static_cast<int>(random() % static_cast<uint64_t>(count));
  if (choice == 1)
    return r.SwapElements(site.message, site.field, index, static_cast<int>(random() % static_cast<uint64_t>(count)));
  if (choice <= 3) {
    r.SwapElements(site.message, site.field, index, count - 1);
    return r.RemoveLast(site.message, site.field);
  }
  set(site, index, random);
}

void ModelMutator::change(const Site& site, Random& random) const {
  if (site.field->is_repeated()) return change_repeated(site, random);
  if (random() % 8 == 0) return site.message->GetReflection()->ClearField(site.message, site.field);
  set(site, 0, random);
}

void ModelMutator::mutate(onnx::ModelProto& model, Random& random) {
  learn(model, random);
  for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    std::vector<Site> sites;
    collect(*model.mutable_graph(), sites, random);
    if (random() % 16 == 0)
      sites = {{&model, model.GetDescriptor()->field(
                            static_cast<int>(random() % static_cast<uint64_t>(model.GetDescriptor()->field_count())))}};
    if (!sites.empty()) change(pick(sites, random), random);
  }
}

}  // namespace relaxc::test
