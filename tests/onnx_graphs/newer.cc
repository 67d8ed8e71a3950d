// Operators that came to ONNX late, or from another domain: sampled and resized images, transforms, text, trees, steps
// of optimizers.
#include <cmath>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

// Moves the last node to another domain, which the model then imports.
void set_domain(G& g, const char* domain, int version) {
  onnx::ModelProto& model = g.graph().model;
  model.mutable_graph()->mutable_node(model.graph().node_size() - 1)->set_domain(domain);
  for (const auto& import : model.opset_import()) {
    if (import.domain() == domain) return;
  }
  onnx::OperatorSetIdProto& import = *model.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}
onnx::AttributeProto texts(const std::string& name, const std::vector<std::string>& values) {
  onnx::AttributeProto attr;
  attr.set_name(name);
  attr.set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attr.add_strings(value);
  return attr;
}
onnx::AttributeProto floats(const std::string& name, const std::vector<double>& values) {
  onnx::AttributeProto attr;
  attr.set_name(name);
  attr.set_type(onnx::AttributeProto::FLOATS);
  for (double value : values) attr.add_floats(static_cast<float>(value));
  return attr;
}
// A float32 value of this rank without empty dims; `known` dims at its end are static.
Value filled(G& g, int64_t rank, size_t known) {
  auto fits = [&](const Value& v) {
    return v.dtype == kFloat32 && G::fits(v, rank, rank) && !has_zero(v.shape) &&
           std::all_of(v.shape.end() - static_cast<int64_t>(known), v.shape.end(),
                       [](const Dim& dim) { return dim.is_static; });
  };
  for (const auto& [name, value] : g.graph().values) {
    if (fits(value) && g.chance(0.5)) return value;
  }
  Shape shape = g.new_shape(rank);
  for (size_t i = shape.size() - known; i < shape.size(); ++i) shape[i] = g.draw(1, 5);
  Value x = g.tensor(kFloat32, shape);
  G::need(fits(x));
  return x;
}

// The coordinates are multiples of an eighth, and the weights of linear samples sum to 1.
void grid_sample(G& g, const char* name) {
  Value x = filled(g, 4, 0);
  Shape at = {x.shape[0], g.draw(1, 4), g.draw(1, 4), 2};
  Value grid = g.tensor(kFloat32, at, {-1.5, 1.5, 0.125, 0});
  G::need(!has_zero({x.shape[2], x.shape[3]}));
  Attrs attrs = {attribute("mode", g.opset() < 20 ? "bilinear" : "linear"),
                 attribute("padding_mode", g.one_of<std::string>({"zeros", "border", "reflection"}).c_str()),
                 attribute("align_corners", g.draw(0, 1))};
  Range range = joined(x.range, {0, 0, x.range.step, 0});
  range.error = x.range.error * 2 + 1e-4 * (x.range.magnitude() + 0.1);
  g.emit(name, {x.name, grid.name}, attrs, kFloat32, {x.shape[0], x.shape[1], at[1], at[2]}, range);
}

// Resize of some axes, with a policy or with antialiasing.
void resize_axes(G& g, const char* name) {
  Value x = filled(g, 3, 2);
  std::vector<int64_t> axes = {1, 2}, sizes = {g.draw(1, 8), g.draw(1, 8)};
  Shape shape = x.shape;
  Attrs attrs = {attribute("axes", axes), attribute("mode", "linear")};
  auto size = [&](size_t i) { return static_cast<double>(x.shape[i].sizes[0]); };
  if (g.chance(0.3)) {
    const bool larger = g.chance(0.5);
    double height = static_cast<double>(sizes[0]) / size(1), width = static_cast<double>(sizes[1]) / size(2);
    double ratio = larger ? std::max(height, width) : std::min(height, width);
    attrs.push_back(attribute("keep_aspect_ratio_policy", larger ? "not_smaller" : "not_larger"));
    for (size_t i : {1, 2}) {
      double exact = size(i) * ratio;
      G::need(std::abs(exact - std::floor(exact) - 0.5) > 1e-3);  // a half is rounded up by some
      shape[i] = static_cast<int64_t>(std::floor(exact + 0.5));
    }
    G::need(!has_zero({shape[1], shape[2]}));
  } else {
    shape[1] = sizes[0], shape[2] = sizes[1];
    if (g.chance(0.4)) attrs.push_back(attribute("antialias", 1));
  }
  Range range = x.range;
  range.error = range.error * 2 + 1e-4 * (range.magnitude() + 0.1);
  g.emit(name, {x.name, "", "", g.ints(sizes)}, attrs, kFloat32, shape, range);
}

void dft(G& g, const char* name) {
  Value x = filled(g, 2, 1);
  const int64_t length = x.shape[1].sizes[0];
  Value column = g.emit("Unsqueeze", {x.name, g.ints({-1})}, {}, x.dtype, {x.shape[0], x.shape[1], 1}, x.range);
  const bool onesided = g.chance(0.5);
  Attrs attrs = {attribute("onesided", onesided ? 1 : 0)};
  std::vector<std::string> inputs = {column.name};
  if (g.opset() < 20) {
    attrs.push_back(attribute("axis", 1));
  } else {
    inputs.insert(inputs.end(), {"", g.scalar(kInt64, 1)});
  }
  const double most = x.range.magnitude() * static_cast<double>(length);
  g.emit(name, inputs, attrs, kFloat32, {x.shape[0], onesided ? length / 2 + 1 : length, 2},
         {-most, most, 1, (x.range.error + 1e-5 * (x.range.magnitude() + 0.1)) * static_cast<double>(length)});
}

// A node whose results are text, which the other operators do not draw.
std::string text_node(G& g, const char* op, const std::string& input, Attrs attrs, int outputs = 1) {
  onnx::NodeProto& node = *g.graph().model.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(g.fresh("text_"));
  node.add_input(input);
  for (onnx::AttributeProto& attr : attrs) *node.add_attribute() = std::move(attr);
  for (int i = 0; i < outputs; ++i) node.add_output(g.fresh("t"));
  return node.output(0);
}
// Integers as text, moved as text, and read again.
void through_text(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype == kInt64 && G::fits(v, 0, 3); }, kInt64, 0, 3, kIntegers);
  Shape shape(x.shape.rbegin(), x.shape.rend());
  std::string text = text_node(g, "Transpose", text_node(g, name, x.name, {attribute("to", 8)}), {});
  if (g.opset() >= 20 && !has_zero(shape) && g.chance(0.5)) {  // the parts of nothing are none
    text = text_node(g, "StringSplit", text, {attribute("delimiter", ";")}, 2);
    shape.push_back(1);
  }
  g.emit(name, {text}, {attribute("to", 7)}, kInt64, shape, x.range);
}

// Two trees of one split each; the operands are exact, because splits jump.
void trees(G& g, const char* name) {
  Value x = filled(g, 2, 1);
  G::need(x.range.exact());
  std::vector<int64_t> features;
  std::vector<double> splits, weights;
  for (int node = 0; node < 6; ++node) {
    features.push_back(g.draw(0, x.shape[1].sizes[0] - 1));
    splits.push_back(static_cast<double>(g.draw(-8, 8)) / 8);
  }
  for (int leaf = 0; leaf < 4; ++leaf) weights.push_back(static_cast<double>(g.draw(-8, 8)) / 8);
  const std::vector<int64_t> tree = {0, 0, 0, 1, 1, 1}, number = {0, 1, 2, 0, 1, 2};
  g.emit(name, {x.name},
         {attribute("nodes_treeids", tree), attribute("nodes_nodeids", number), attribute("nodes_featureids", features),
          floats("nodes_values", splits),
          texts("nodes_modes",
                {"BRANCH_LEQ", "LEAF", "LEAF", g.one_of<std::string>({"BRANCH_LT", "BRANCH_LEQ"}), "LEAF", "LEAF"}),
          attribute("nodes_truenodeids", std::vector<int64_t>{1, 0, 0, 1, 0, 0}),
          attribute("nodes_falsenodeids", std::vector<int64_t>{2, 0, 0, 2, 0, 0}),
          attribute("target_treeids", std::vector<int64_t>{0, 0, 1, 1}),
          attribute("target_nodeids", std::vector<int64_t>{1, 2, 1, 2}),
          attribute("target_ids", std::vector<int64_t>{0, 0, 0, 0}), floats("target_weights", weights),
          attribute("n_targets", 1)},
         kFloat32, {x.shape[0], 1}, {-2, 2, 0.125, 0});
  set_domain(g, "ai.onnx.ml", 3);
}

// ONNX Runtime has these in builds for training only; the graph is then compared between relaxc's own levels.
void momentum_step(G& g, const char* name) {
  Value x = filled(g, g.draw(1, 3), 0), gradient = g.tensor(kFloat32, x.shape), speed = g.tensor(kFloat32, x.shape);
  const double most = x.range.magnitude() + 4 * (x.range.magnitude() + 4);
  const double error = 8 * x.range.error + 1e-5 * most;
  g.emit_many(name,
              {g.scalar(kFloat32, 0.25), g.scalar(kInt64, static_cast<double>(g.draw(0, 2))), x.name, gradient.name,
               speed.name},
              {attribute("alpha", 0.5), attribute("beta", 0.75), attribute("norm_coefficient", 0.125),
               attribute("mode", g.one_of<std::string>({"standard", "nesterov"}).c_str())},
              {{kFloat32, x.shape, {-most, most, 1, error}}, {kFloat32, x.shape, {-most, most, 1, error}}});
  set_domain(g, "ai.onnx.preview.training", 1);
}

}  // namespace

std::vector<Operator> newer_operators() {
  return {{"GridSample", 17, grid_sample}, {"Resize", 18, resize_axes},          {"DFT", 17, dft},
          {"Cast", 13, through_text},      {"TreeEnsembleRegressor", 13, trees}, {"Momentum", 13, momentum_step}};
}

}  // namespace relaxc::test::onnx_graphs
