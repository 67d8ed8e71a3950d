// Strings. Operators that move elements run on positions in a pool of strings, whatever they are, and those that
// compare strings run on places in a sorted pool; a tensor of strings is made where another operator or an output needs
// it.
#include "builtins/regex.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/loop.h"
#include "vm/error.h"

namespace relaxc::onnx_import {

bool is_text(const Value& value) {
  std::optional<Type> type = value ? value->type() : std::nullopt;
  return type && tensor_dtype(*type) == DType::string();
}

namespace {

constexpr uint32_t kAll = ~uint32_t{0};
// The inputs and outputs, as bits, that are strings where the operator has strings. Each may also be numbers.
struct Movement {
  std::string_view op;
  uint32_t inputs, outputs;
  bool compares = false;
  bool fills = false;         // elements that come from nowhere are 0, and empty strings
  bool only_nearest = false;  // other modes make new elements
};
constexpr Movement kMovements[] = {{"CenterCropPad", 1, 1, false, true},
                                   {"Compress", 1, 1},
                                   {"Concat", kAll, 1},
                                   {"DepthToSpace", 1, 1},
                                   {"Equal", 0b11, 0, true},
                                   {"Expand", 1, 1},
                                   {"Flatten", 1, 1},
                                   {"Gather", 1, 1},
                                   {"GatherElements", 1, 1},
                                   {"GatherND", 1, 1},
                                   {"OneHot", 0b100, 1},
                                   {"Pad", 0b101, 1, false, true},
                                   {"Reshape", 1, 1},
                                   {"Resize", 1, 1, false, false, true},
                                   {"ReverseSequence", 1, 1},
                                   {"Scatter", 0b101, 1},
                                   {"ScatterElements", 0b101, 1},
                                   {"ScatterND", 0b101, 1},
                                   {"Shape", 1, 0},
                                   {"Size", 1, 0},
                                   {"Slice", 1, 1},
                                   {"SpaceToDepth", 1, 1},
                                   {"Split", 1, kAll},
                                   {"Squeeze", 1, 1},
                                   {"Tile", 1, 1},
                                   {"Transpose", 1, 1},
                                   {"Trilu", 1, 1, false, true},
                                   {"Unique", 1, 1, true},
                                   {"Unsqueeze", 1, 1},
                                   {"Upsample", 1, 1, false, false, true},
                                   {"Where", 0b110, 1},
                                   {"ArrayFeatureExtractor", 1, 1}};

// Operators whose converters know strings, and those that pass values on.
constexpr std::string_view kTakeStrings[] = {"Cast",
                                             "CastLike",
                                             "CategoryMapper",
                                             "ConcatFromSequence",
                                             "DictVectorizer",
                                             "Identity",
                                             "If",
                                             "LabelEncoder",
                                             "Loop",
                                             "MurmurHash3",
                                             "NonZero",
                                             "OneHotEncoder",
                                             "Optional",
                                             "OptionalGetElement",
                                             "OptionalHasElement",
                                             "RegexFullMatch",
                                             "Scan",
                                             "SequenceConstruct",
                                             "SequenceInsert",
                                             "SequenceMap",
                                             "SplitToSequence",
                                             "StringConcat",
                                             "StringNormalizer",
                                             "StringSplit",
                                             "TfIdfVectorizer",
                                             "Tokenizer",
                                             "ZipMap"};

// Brings the positions of several values into one pool.
class OnePool {
 public:
  // Position 0 is an empty string where one is wanted.
  OnePool(Node& n, bool begins_empty) : n_(n) {
    if (begins_empty) pools_.push_back(constant(Tensor::strings({1}, {std::string()}), n.span()));
  }
  // Returns the positions in the whole pool.
  Value add(const MovedStrings& strings) {
    Expr offset = int_imm(0);
    for (const Expr& pool : pools_) {
      if (same_node(pool, strings.pool)) return shifted(strings.positions, offset);
      offset = n_.simplify(offset + count(pool));
    }
    pools_.push_back(strings.pool);
    return shifted(strings.positions, offset);
  }
  Expr pool() const { return pools_.size() == 1 ? pools_[0] : n_.builder().op("string.join", pools_); }

 private:
  Expr count(const Expr& pool) { return n_.simplify(product(n_.shape_of(pool))); }
  Value shifted(const Value& positions, const Expr& offset) {
    if (is_int(offset, 0)) return positions;
    Expr tensor = n_.tensor(n_.of(KnownTensor{kInt64, {}, {offset}}));
    return n_.of(n_.add(n_.tensor(positions), tensor));
  }
  Node& n_;
  std::vector<Expr> pools_;
};

Expr string_normalizer(Node& n, const Expr& x) {
  std::vector<std::string> words = n.attr_strings("stopwords");
  Expr stop_words = constant(Tensor::strings({std::ssize(words)}, words), n.span());
  StringNormalizeAttrs attrs{n.attr_string("case_change_action", "NONE"), n.attr_int("is_case_sensitive", 0) != 0,
                             n.attr_string("locale", "")};
  return n.op("string.normalize", {x, stop_words}, attrs);
}
// Strings broadcast as positions do.
Expr string_concat(Node& n) {
  std::vector<Expr> shape = n.broadcast(n.shape(0), n.shape(1)), operands;
  for (size_t i = 0; i < 2; ++i) {
    if (!is_text(n.value(i))) n.fail("input {} must be strings", i);
    if (n.same_dims(n.shape(i), shape)) {
      operands.push_back(n.tensor(i));
      continue;
    }
    MovedStrings strings = n.graph().moved(n.value(i), n.span());
    Expr positions = n.broadcast_to(n.tensor(strings.positions), shape);
    operands.push_back(n.builder().op("string.take", {strings.pool, positions}));
  }
  return n.builder().op("string.concat", operands);
}
// Returns the dims of input 0, which those of parts of its strings begin with.
std::vector<std::optional<Expr>> known_dims(Node& n) {
  const std::vector<Expr> dims = n.shape(0);
  return {dims.begin(), dims.end()};
}
Outputs string_split(Node& n) {
  StringSplitAttrs attrs{n.attr_string("delimiter", ""), n.attr_int("maxsplit", -1)};
  Expr both = n.builder().op("string.split", {n.tensor(0)}, attrs);
  Expr parts = n.builder().emit(tuple_get(both, 0)), counts = n.builder().emit(tuple_get(both, 1));
  return {n.of(with_measured_dims(n, parts, known_dims(n), "parts")), n.of(with_measured_dims(n, counts))};
}
void check_pattern(Node& n, const std::string& pattern) {
  try {
    vm::Regex{pattern};
  } catch (const RuntimeError& error) {
    n.fail("{}", error.what());
  }
}
Expr regex_full_match(Node& n, const Expr& x) {
  PatternAttrs attrs{n.attr_string("pattern", "")};
  check_pattern(n, attrs.pattern);
  return n.builder().op("string.full_match", {x}, attrs);
}

// Tokenizer of com.microsoft, as ONNX Runtime has it.
Expr tokenizer(Node& n, const Expr& x) {
  std::vector<std::string> patterns = n.attr_strings("separators");
  std::string token = n.attr_string("tokenexp", "");
  TokenizeAttrs attrs{!n.has_attr("separators"), n.attr_int("mincharnum", 1), n.attr_int("mark", 0) != 0,
                      n.attr_string("pad_value", "")};
  if (n.rank(0) < 1 || n.rank(0) > 2) n.fail("the input has rank {}, expected 1 or 2", n.rank(0));
  if (attrs.is_token) patterns = {token};
  if (patterns.empty() || (attrs.is_token && token.empty()))
    n.fail("expected one of the attributes 'separators' and 'tokenexp', not empty");
  const bool of_characters = patterns == std::vector<std::string>{attrs.is_token ? "." : ""};
  if (of_characters) patterns.clear();
  if (of_characters) attrs.is_token = false;
  for (const std::string& pattern : patterns) check_pattern(n, pattern);
  Expr list = constant(Tensor::strings({std::ssize(patterns)}, patterns), n.span());
  return with_measured_dims(n, n.builder().op("string.tokenize", {x, list}, attrs), known_dims(n), "tokens");
}

}  // namespace

MovedStrings GraphImporter::moved(const Value& value, const Span& span) {
  if (value->strings) return *value->strings;
  Expr pool = tensor_of(value, span);
  const std::vector<Expr>* shape = known_shape(pool.type());
  if (!shape) fail_unsupported(span, "the rank of a tensor of strings is not known");
  if (auto dims = constant_shape(pool.type())) {
    Tensor positions = Tensor::empty(*dims, kInt64);
    for (int64_t i = 0; i < positions.size(); ++i) positions.set_int(i, i);
    return {make_value({.tensor = constant(positions, span), .home = &builder_}), pool};
  }
  Expr all = builder_.op("arange", {int_imm(0), simplify(product(*shape)), int_imm(1)}, DTypeAttrs{kInt64});
  if (shape->size() != 1) all = builder_.op("reshape", {all, shape_expr(*shape)});
  return {make_value({.tensor = all, .home = &builder_}), pool};
}

Outputs GraphImporter::convert_node(const onnx::NodeProto& node, const ConverterRow& row, int64_t version,
                                    std::vector<Value> inputs, const Span& span) {
  bool has_strings = std::ranges::any_of(inputs, is_text);
  const Movement* movement = has_strings ? find_item(kMovements, row.op_type, &Movement::op) : nullptr;
  Node view(*this, node, row, version, inputs, span);
  if (has_strings && !movement && std::ranges::find(kTakeStrings, row.op_type) == std::end(kTakeStrings))
    view.unsupported("{} of strings", node.op_type());
  if (!movement) return row.convert(view);
  for (const auto& attribute : node.attribute()) {
    const bool makes_elements =
        attribute.name() == "mode" ? attribute.s() != "nearest" : attribute.s() == "tf_crop_and_resize";
    if (movement->only_nearest && makes_elements)
      view.unsupported("{} of strings with {} '{}', which makes new elements", node.op_type(), attribute.name(),
                       printable(attribute.s()));
  }

  OnePool pool(view, movement->fills);
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool moves = inputs[i] && (movement->inputs == kAll || movement->inputs >> i & 1);
    if (moves != is_text(inputs[i]))
      view.fail("input {} is of {}", i, moves ? "numbers, others of strings" : "strings");
    if (moves) inputs[i] = pool.add(moved(inputs[i], span));
  }
  Expr strings = pool.pool();
  if (movement->compares) {
    Expr both = builder_.op("string.sort", {strings});
    strings = with_measured_dims(view, builder_.emit(tuple_get(both, 0), "sorted"));
    Expr places = builder_.emit(tuple_get(both, 1), "places");
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !(movement->inputs >> i & 1)) continue;
      inputs[i] = view.of(view.op("take", {places, view.tensor(inputs[i])}, TakeAttrs{.axis = 0}));
    }
  }
  Node on_positions(*this, node, row, version, inputs, span);
  Outputs outputs = row.convert(on_positions);
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool moves = outputs[i] && (movement->outputs == kAll || movement->outputs >> i & 1);
    if (moves) outputs[i] = make_value({.strings = MovedStrings{outputs[i], strings}, .home = &builder_});
  }
  return outputs;
}

std::vector<ConverterRow> strings_converters() {
  return {
      {"StringNormalizer", 10, 1, 1, string_normalizer, "case_change_action is_case_sensitive locale stopwords"},
      {"StringConcat", 20, 2, 2, string_concat},
      {"StringSplit", 20, 1, 1, string_split, "delimiter maxsplit"},
      {"RegexFullMatch", 20, 1, 1, regex_full_match, "pattern"},
      {"Tokenizer", 1, 1, 1, tokenizer, "mark mincharnum pad_value separators tokenexp", "com.microsoft"},
  };
}

}  // namespace relaxc::onnx_import
