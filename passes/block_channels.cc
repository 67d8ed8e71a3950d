// Expects: operators on leaves, weights folded to constants. Guarantees: float32 convolutions over images with constant
// weights, or with enough pixels to pack others, have their channels in blocks of a vector: [N, C / b, H, W, b], layout
// "NCHW16c" where vectors have 16 lanes. Images stay so from one convolution to the next, through elementwise
// operators, tensor programs that are elementwise, pools, concatenations, resampling and global means; others read them
// in the plain order. An image of few channels (a picture) is read as it is. A sequence [N, C, L] that a convolution
// reads is an image of one row.
//
// A depthwise convolution of a plain image stays in the plain order. Groups whose channels fill half of a block become
// one with zeros between them, so an infinite element makes NaNs in the other half, too.
// Channels that do not fill the last block are padded where little is wasted. The padding may hold anything:
// convolutions do not read it, and everything else works on each channel separately.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/data_layout.h"
#include "passes/block_programs.h"
#include "passes/compose.h"
#include "passes/graph_decisions.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

constexpr OpName kImageReductions[] = {ops::kMean, ops::kSum, ops::kMax, ops::kMin};
// The most channels of a picture, which are too few for a block.
constexpr int64_t kPictureChannels = 4;

// An image [N, blocks, H, W, block] whose first `channels` channels count. A sequence is one in the plain order.
struct Blocked {
  Expr value;
  int64_t channels;
  bool is_sequence = false;
};

// Returns the dims [N, C, 1, L] of a sequence, and others as they are.
std::vector<Expr> image_dims(const std::vector<Expr>& dims) {
  return dims.size() == 3 ? with_new_item(dims, 2, int_imm(1)) : dims;
}

// Returns the attributes of the same convolution of images.
ConvAttrs<2> image_attrs(const ConvAttrs<1>& attrs) {
  bool is_plain = attrs.data_layout == data_layout_of(1) && attrs.kernel_layout == kernel_layout_of(1) &&
                  attrs.out_layout.value_or(attrs.data_layout) == attrs.data_layout;
  return {.strides = {1, attrs.strides[0]},
          .padding = {0, attrs.padding[0], 0, attrs.padding[1]},
          .dilation = {1, attrs.dilation[0]},
          .groups = attrs.groups,
          .data_layout = is_plain ? data_layout_of(2) : attrs.data_layout,
          .out_dtype = attrs.out_dtype};
}

class ChannelBlocker final : public GraphRewriter {
 public:
  ChannelBlocker(const PassContext& context, IRModule& module, int64_t block)
      : GraphRewriter(context.ops), context_(context), module_(module), block_(block) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    if (binding.cast) return std::nullopt;
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>()) {
      const Tuple* made = item->tuple.as<Tuple>();  // of a kernel with several results
      return made ? std::optional(made->items[static_cast<size_t>(item->index)]) : std::nullopt;
    }
    const std::string& name = op_name(binding.value);
    const Call* node = binding.value.as<Call>();
    if (name == ops::kCallTir) return kernel(binding, b);
    if (name.empty() || tensor_dtype(binding.value.type()) != kFloat32) return std::nullopt;
    std::optional<Blocked> result;
    if (name == ops::kConv2d) result = convolution(*node, read_attrs<ConvAttrs<2>>(node->attrs), binding.var, b);
    if (name == ops::kConv1d && !has_rule_for(ops::kConv1d))
      result = convolution(*node, image_attrs(read_attrs<ConvAttrs<1>>(node->attrs)), binding.var, b);
    if (name == ops::kMaxPool2d || name == ops::kAvgPool2d) result = pool<PoolAttrs<2>>(*node, name, b);
    if (name == ops::kAdaptiveAvgPool2d) result = pool<AdaptiveAttrs<2>>(*node, name, b);
    if (name == ops::kConcat) result = concatenation(*node, b);
    if (name == ops::kResize) result = resize(*node, b);
    if (name == ops::kPad) result = pad(*node, b);
    const OpRow* row = ops_.find(name);
    if (row && row->pattern <= OpPattern::kBroadcast) result = elementwise(*node, *row, b);
    if (find_item(kImageReductions, name, &OpName::text)) return reduction(*node, name, binding, b);
    if (!result) return std::nullopt;
    return known_as_plain(*result, b, binding.var->name);
  }

  // Returns the image for operators that read the plain order; it is dead code if there are none.
  Expr known_as_plain(const Blocked& image, Builder& b, const std::string& hint) {
    Expr plain = to_plain(image, b, hint);
    blocked_.back().insert_or_assign(plain.get(), image);
    return plain;
  }

  void enter_scope() override { blocked_.push_back(blocked_.back()); }
  void leave_scope() override { blocked_.pop_back(); }

 private:
  int64_t padded(int64_t channels) const { return (channels + block_ - 1) / block_ * block_; }
  // Returns whether so many channels fill enough of their blocks.
  bool fills_blocks(int64_t channels) const { return 2 * channels >= padded(channels); }
  // Returns whether enough pixels use weights that are packed at run time.
  static bool gains_by_packing(const VarRef& image) {
    const std::vector<Expr>* dims = known_shape(image.type());
    if (!dims) return false;
    Expr count = (*dims)[0];
    for (size_t d = 2; d < dims->size(); ++d) count = count * (*dims)[d];
    auto pixels = as_int(simplify(count));
    return !pixels || *pixels >= cost_model::kFewestPixelsToPack;
  }
  // Returns the decision about the image that a convolution makes, by whether blocks pay.
  bool is_blocked(bool pays, const VarRef& var) const {
    return decide("image_layout", "block", var, context_, {0, block_}, pays ? block_ : 0) != AttrValue(0);
  }
  // Returns whether a rule of the user's expects the operator as it is.
  bool has_rule_for(OpName op) const {
    return std::ranges::any_of(context_.schedules, [&](const ScheduleRule& rule) {
      return ops::full_name(operator_of(rule, context_)) == op.text;
    });
  }
  std::string layout() const { return blocked_layout(block_); }

  const Blocked* find(const Expr& plain) const { return find_value(blocked_.back(), plain.get()); }

  // Returns the tensor as an image.
  static Expr as_image(const Expr& x, Builder& b) {
    const std::vector<Expr>& dims = *known_shape(x.type());
    return dims.size() == 3 ? reshape(x, image_dims(dims), b) : x;
  }
  // Returns an image [n, c, h, w], c constant and more than 1, in blocks.
  Expr block(const Expr& plain, Builder& b) {
    const std::vector<Expr> dims = image_dims(*known_shape(plain.type()));
    int64_t channels = *as_int(dims[1]);
    Expr whole = pad_axis(as_image(plain, b), 1, padded(channels) - channels, b);
    Expr blocks = int_imm(padded(channels) / block_), lanes = int_imm(block_);
    if (is_int(dims[2], 1) && is_int(dims[3], 1)) return reshape(whole, {dims[0], blocks, dims[2], dims[3], lanes}, b);
    return permute_dims(reshape(whole, {dims[0], blocks, lanes, dims[2], dims[3]}, b), {0, 1, 3, 4, 2}, b);
  }

  Expr to_plain(const Blocked& image, Builder& b, const std::string& hint) {
    std::vector<Expr> dims = *known_shape(image.value.type());
    Expr channels = int_imm(padded(image.channels)), ordered = image.value;
    if (!is_int(dims[2], 1) || !is_int(dims[3], 1)) ordered = permute_dims(ordered, {0, 1, 4, 2, 3}, b);
    bool whole = padded(image.channels) == image.channels;
    std::vector<Expr> plain_dims = {dims[0], channels, dims[2], dims[3]};
    if (image.is_sequence) plain_dims.erase(plain_dims.begin() + 2);
    Expr plain = reshape(ordered, plain_dims, b, whole ? hint : "");
    if (whole) return plain;
    std::vector<Expr> args = {plain};  // axis, begin, end, step
    for (int64_t number : {int64_t{1}, int64_t{0}, image.channels, int64_t{1}})
      args.push_back(shape_expr({int_imm(number)}));
    return b.op("strided_slice", args, SliceAttrs{.assume_inbound = true}, hint);
  }

  // Returns the image in blocks, if it is in blocks already or its channels fill some.
  std::optional<Blocked> in_blocks(const Expr& plain, Builder& b) {
    if (const Blocked* known = find(plain)) return *known;
    const std::vector<Expr>* dims = known_shape(plain.type());
    if (!dims || image_dims(*dims).size() != 4 || tensor_dtype(plain.type()) != kFloat32) return std::nullopt;
    auto channels = as_int((*dims)[1]);
    if (!channels || !fills_blocks(*channels)) return std::nullopt;
    Blocked result{block(plain, b), *channels, dims->size() == 3};
    blocked_.back().insert_or_assign(plain.get(), result);
    return result;
  }

  // Returns how many groups of a convolution make one whose channels and filters fill blocks; nullopt if none do, or
  // too many for the products with zeros that this takes.
  std::optional<int64_t> merged_groups(int64_t groups, int64_t depth, int64_t filters, bool is_constant) const {
    if (groups == 1) return 1;
    for (int64_t merged = 1; merged <= (is_constant ? cost_model::kMostMergedGroups : 1); ++merged) {
      bool fills = merged * depth % block_ == 0 && merged * (filters / groups) % block_ == 0;
      if (fills && groups % merged == 0) return merged;
    }
    return std::nullopt;
  }
  // Returns the weight [O, I, H, W] of a convolution in groups as that of groups `merged` times as large, [O, merged *
  // I, H, W], with zeros between channels and filters of different ones.
  static Expr merge_groups(const Expr& weight, int64_t groups, int64_t merged, Builder& b) {
    if (merged == 1) return weight;
    const std::vector<int64_t> dims = *constant_shape(weight.type());
    Tensor own = Tensor::empty({1, merged, 1, merged, 1, 1, 1}, kFloat32);
    for (int64_t i = 0; i < merged * merged; ++i) own.set_double(i, i / merged == i % merged ? 1 : 0);
    Expr apart =
        reshape(weight, int_imms({groups / merged, merged, dims[0] / groups, 1, dims[1], dims[2], dims[3]}), b);
    return reshape(b.op("multiply", {apart, constant(own)}), int_imms({dims[0], merged * dims[1], dims[2], dims[3]}),
                   b);
  }

  std::optional<Blocked> convolution(const Call& node, ConvAttrs<2> attrs, const VarRef& var, Builder& b) {
    std::optional<std::vector<int64_t>> weight = constant_shape(node.args[1].type());
    bool floats =
        weight && tensor_dtype(node.args[1].type()) == kFloat32 && tensor_dtype(node.args[0].type()) == kFloat32;
    bool is_plain = attrs.data_layout == data_layout_of(2) && attrs.kernel_layout == kernel_layout_of(2) &&
                    attrs.out_layout.value_or(attrs.data_layout) == attrs.data_layout;
    if (!floats || !is_plain || !(node.args[1].is<Constant>() || gains_by_packing(var))) return std::nullopt;
    int64_t filters = (*weight)[0], depth = (*weight)[1];
    bool depthwise = attrs.groups > 1 && attrs.groups == filters && depth == 1;
    // A depthwise convolution, and one of a sequence with little work for each element, is as fast in the plain order:
    // it goes on in the layout of its data.
    bool is_sequence = weight->size() == 3;
    bool is_work =
        !is_sequence || filters * depth * weight->back() >= cost_model::kFewestProductsToBlock * (filters + depth);
    bool pays = fills_blocks(filters) && (find(node.args[0]) || (!depthwise && is_work));
    auto merged = depthwise ? 1 : merged_groups(attrs.groups, depth, filters, node.args[1].is<Constant>());
    if (!merged || !is_blocked(pays, var)) return std::nullopt;
    Expr kernel = merge_groups(as_image(node.args[1], b), attrs.groups, *merged, b);
    attrs.groups /= *merged;
    Expr w = pad_axis(kernel, 0, padded(filters) - filters, b);
    attrs.out_layout = layout();
    if (attrs.groups == 1 && *merged == 1 && depth <= kPictureChannels && !find(node.args[0]))
      return Blocked{b.op(ops::short_name(ops::kConv2d), {as_image(node.args[0], b), w}, attrs), filters, is_sequence};
    std::optional<Blocked> data = in_blocks(node.args[0], b);
    if (!data) return std::nullopt;
    attrs.data_layout = layout();
    if (depthwise) attrs.groups = padded(filters);
    return Blocked{b.op(ops::short_name(ops::kConv2d), {data->value, w}, attrs), filters, is_sequence};
  }

  template <class A>
  std::optional<Blocked> pool(const Call& node, const std::string& name, Builder& b) {
    const Blocked* data = find(node.args[0]);
    A attrs = read_attrs<A>(node.attrs);
    const std::string plain = A().layout;
    if (!data || data->is_sequence || attrs.layout != plain || attrs.out_layout.value_or(plain) != plain)
      return std::nullopt;
    attrs.layout = layout();
    attrs.out_layout = layout();
    return Blocked{b.op(name, {data->value}, attrs), data->channels};
  }

  static int64_t axis_of_image(int64_t axis, const Expr& image) {
    return axis < 0 ? axis + known_rank(image.type()) : axis;
  }
  std::optional<Blocked> concatenation(const Call& node, Builder& b) {
    const Tuple* items = node.args[0].as<Tuple>();
    int64_t axis = read_attrs<ConcatAttrs>(node.attrs).axis.value_or(0);
    if (!items || axis_of_image(axis, items->items.at(0)) != 1) return std::nullopt;
    std::vector<Expr> parts;
    int64_t channels = 0;
    for (const Expr& item : items->items) {
      const Blocked* part = find(item);
      if (!part || part->channels % block_ != 0) return std::nullopt;
      parts.push_back(part->value);
      channels += part->channels;
    }
    return Blocked{b.op("concat", {tuple(parts)}, ConcatAttrs{.axis = 1}), channels,
                   find(items->items[0])->is_sequence};
  }

  // Resamples rows and columns, whose axes are the same in both layouts.
  std::optional<Blocked> resize(const Call& node, Builder& b) {
    const Blocked* data = find(node.args[0]);
    const ShapeExpr* shape = node.args[1].as<ShapeExpr>();
    auto attrs = read_attrs<ResizeAttrs>(node.attrs);
    bool in_image =
        !attrs.axes.empty() && std::ranges::all_of(attrs.axes, [](int64_t axis) { return axis == 2 || axis == 3; });
    if (!data || data->is_sequence || !shape || node.args.size() != 2 || !attrs.roi.empty() || !in_image)
      return std::nullopt;
    std::vector<Expr> dims = shape->values, blocks = *known_shape(data->value.type());
    dims[1] = blocks[1];
    dims.push_back(blocks[4]);
    if (!attrs.scales.empty()) attrs.scales.push_back(1);
    return Blocked{b.op("image.resize", {data->value, shape_expr(dims)}, attrs), data->channels};
  }

  // Pads with rows and columns.
  std::optional<Blocked> pad(const Call& node, Builder& b) {
    const Blocked* data = find(node.args[0]);
    auto attrs = read_attrs<PadAttrs>(node.attrs);
    std::vector<int64_t>& widths = attrs.pad_width;
    if (data && data->is_sequence && widths.size() == 6) widths.insert(widths.begin() + 4, {0, 0});
    if (!data || node.args.size() != 1 || widths.size() != 8) return std::nullopt;
    if (std::any_of(widths.begin(), widths.begin() + 4, [](int64_t width) { return width != 0; })) return std::nullopt;
    widths.insert(widths.end(), {0, 0});
    return Blocked{b.op("nn.pad", {data->value}, attrs), data->channels, data->is_sequence};
  }

  // Returns an operand that is broadcast over the image in the blocked order.
  std::optional<Expr> broadcast(const Expr& operand, const Blocked& image, Builder& b) {
    const std::vector<Expr>* known = known_shape(operand.type());
    const int64_t channels = image.channels;
    const size_t rank = image.is_sequence ? 3 : 4;
    if (!known || known->size() > rank) return std::nullopt;
    if (known->empty()) return operand;
    std::vector<Expr> dims(rank - known->size(), int_imm(1));
    dims.insert(dims.end(), known->begin(), known->end());
    dims = image_dims(dims);
    Expr plain = known->size() == 4 ? operand : reshape(operand, dims, b);
    if (is_int(dims[1], channels) && channels > 1) return block(plain, b);
    if (!is_int(dims[1], 1)) return std::nullopt;
    dims.push_back(int_imm(1));
    return reshape(plain, dims, b);
  }

  std::optional<Blocked> elementwise(const Call& node, const OpRow& row, Builder& b) {
    auto image = std::ranges::find_if(node.args, [&](const Expr& arg) { return find(arg); });
    bool has_axis = std::ranges::any_of(
        row.attrs, [](const OpAttr& attr) { return std::string_view(attr.name).starts_with("ax"); });
    if (image == node.args.end() || has_axis) return std::nullopt;
    const Blocked first = *find(*image);
    std::vector<Expr> args;
    for (const Expr& arg : node.args) {
      if (arg.is<Tuple>() || arg.is<ShapeExpr>()) return std::nullopt;
      const Blocked* known = find(arg);
      std::optional<Expr> operand = known ? known->value : arg;
      if (known && known->is_sequence != first.is_sequence) return std::nullopt;
      if (!known && arg.type().is<TensorType>()) operand = broadcast(arg, first, b);
      if (!operand) return std::nullopt;
      args.push_back(*operand);
    }
    return Blocked{b.op(row.name, args, node.attrs), first.channels, first.is_sequence};
  }

  // A tensor program that is elementwise is one in blocks, too, unless somebody schedules it in the plain order.
  std::optional<Expr> kernel(const Binding& binding, Builder& b) {
    std::optional<KernelCall> call = as_kernel_call(binding.value, module_);
    std::optional<PrimFuncRef> program = call ? called_program(call->callee, module_) : std::nullopt;
    if (!program || call->outputs.empty()) return std::nullopt;
    const std::vector<Expr>* out = known_shape(call->outputs[0]);
    if (!out || out->size() != 4) return std::nullopt;
    ImageBlocks blocks{{}, 0, block_};
    std::vector<Expr> tensors = call->tensors;
    for (Expr& tensor : tensors) {
      const Blocked* image = find(tensor);
      blocks.are_blocked.push_back(image && !image->is_sequence && is_int((*out)[1], image->channels));
      if (!blocks.are_blocked.back()) continue;
      blocks.channels = image->channels;
      tensor = image->value;
    }
    auto is_alike = [&](const Type& type) {
      const std::vector<Expr>* dims = known_shape(type);
      return dims && dims->size() == 4 && is_int((*dims)[1], blocks.channels);
    };
    if (blocks.channels == 0 || !std::ranges::all_of(call->outputs, is_alike)) return std::nullopt;
    std::variant<PrimFuncRef, std::string> made = "a schedule or rule is for it";
    if (!name_in_rules(call->name(), *program, context_)) made = blocked_program(*call, *program, blocks);
    if (const std::string* why = std::get_if<std::string>(&made)) {
      report_plain(*call, binding, *why);
      return std::nullopt;
    }
    auto blocked_type = [&](const Type& type) {
      const std::vector<Expr>& dims = *known_shape(type);
      return tensor_type({dims[0], int_imm(padded(blocks.channels) / block_), dims[2], dims[3], int_imm(block_)},
                         tensor_dtype(type));
    };
    Expr value = b.emit(make_call_tir(module_, call->name(), std::get<PrimFuncRef>(made), tensors,
                                      map_each(call->outputs, blocked_type), binding.value.span()));
    if (call->outputs.size() == 1) return known_as_plain({value, blocks.channels}, b, binding.var->name);
    std::vector<Expr> results;
    for (size_t i = 0; i < call->outputs.size(); ++i) {
      Expr item = b.emit(tuple_get(value, static_cast<int64_t>(i)));
      results.push_back(known_as_plain({item, blocks.channels}, b, binding.var->name));
    }
    return tuple(std::move(results));
  }

  // Says that a kernel of the user's is not fused with the convolution before it, and why.
  void report_plain(const KernelCall& call, const Binding& binding, const std::string& why) const {
    const KernelRule* rule = kernel_of(call.name(), context_);
    if (!rule || !context_.claimed) return;
    std::string note = fmt::format(
        "it reads the image in the plain order and is not fused with what makes it in blocks of {} channels: {}; "
        "S.use(\"image_layout\", block=0), with at= for one convolution, keeps images in the plain order",
        block_, why);
    context_.claimed({binding.var.span(), call.name(), fmt::format("kernel '{}'", rule->name), "", std::move(note)});
  }

  // Reduces the whole image: the result has its channels in the plain order again.
  std::optional<Expr> reduction(const Call& node, const std::string& name, const Binding& binding, Builder& b) {
    const Blocked* data = find(node.args[0]);
    auto axes = read_attrs<ReduceAttrs>(node.attrs).axis.value_or(std::vector<int64_t>());
    for (int64_t& axis : axes) axis = axis < 0 ? axis + 4 : axis;
    std::ranges::sort(axes);
    const std::vector<Expr>* result = known_shape(binding.value.type());
    if (!data || data->is_sequence || !result || axes != std::vector<int64_t>{2, 3}) return std::nullopt;
    Blocked reduced{b.op(name, {data->value}, ReduceAttrs{.axis = axes, .keepdims = true}), data->channels};
    Expr plain = to_plain(reduced, b, {});
    if (result->size() != 4) return reshape(plain, *result, b, binding.var->name);
    blocked_.back().insert_or_assign(plain.get(), reduced);
    return plain;
  }

  const PassContext& context_;
  IRModule& module_;
  int64_t block_;
  // By the image in the plain order, in each scope that is open.
  std::vector<std::unordered_map<const NodeHeader*, Blocked>> blocked_{1};
};

}  // namespace

IRModule block_channels(IRModule module, PassContext& context) {
  check_places(module, context);
  int64_t block = context.target.vector_lanes(32);
  if (block < cost_model::kFewestLanes) return module;
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return is_primitive(*function) ? function : ChannelBlocker(context, result, block).run(function);
  });
}

}  // namespace relaxc
