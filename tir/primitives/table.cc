#include "tir/primitives/table.h"

#include "ir/visit.h"
#include "tir/primitives/codec.h"

namespace relaxc::scheduling {

namespace {

template <class P>
constexpr size_t kNumArguments = field_count<P>();

template <class P>
std::shared_ptr<const void> decode_step(const AttrList& values) {
  RELAXC_CHECK(values.size() == kNumArguments<P>, "expected {} values for '{}', got {}", kNumArguments<P>,
               P::kInfo.name, values.size());
  auto step = std::make_shared<P>();
  [[maybe_unused]] size_t i = 0;
  for_each_field<P>([&](const auto& f) {
    using Member = typename std::remove_cvref_t<decltype(f)>::Member;
    const AttrValue& value = values[i++];
    try {
      *step.*f.member = Codec<Member>::decode(value);
    } catch (const WrongKind& wrong) {
      const Expr* e = value.as<Expr>();
      fail(e ? e->span() : Span(), "{}: argument '{}' is {}, expected {}", P::kInfo.name, f.name,
           relaxc::to_string(value), wrong.expected);
    }
  });
  return step;
}

template <class P>
AttrList encode_step(const void* step, const Workspace& workspace) {
  [[maybe_unused]] const P& given = *static_cast<const P*>(step);
  auto encode = [](const P& p) {
    AttrList values;
    for_each_field<P>([&](const auto& f) {
      using Member = typename std::remove_cvref_t<decltype(f)>::Member;
      values.push_back(Codec<Member>::encode(p.*f.member));
    });
    return values;
  };
  if constexpr (requires { given.recorded(workspace); }) return encode(given.recorded(workspace));
  return encode(given);
}

VarRef variable(const BlockRV& block) { return block.var; }
VarRef variable(const LoopRV& loop) { return loop.var; }
VarRef variable(const Expr& number) { return cast<Var>(number); }

template <class P>
std::vector<VarRef> apply_step(const void* step, Step& context) {
  const P& given = *static_cast<const P*>(step);
  if constexpr (std::is_void_v<ResultOf<P>>) {
    given.apply(context);
    return {};
  } else if constexpr (requires(const ResultOf<P>& result) { variable(result); }) {
    return {variable(given.apply(context))};
  } else {
    return map_each(given.apply(context), [](const auto& result) { return variable(result); });
  }
}

template <class R>
constexpr ResultKind result_kind() {
  if (std::is_same_v<R, BlockRV>) return ResultKind::kBlock;
  if (std::is_same_v<R, LoopRV>) return ResultKind::kLoop;
  if (std::is_same_v<R, Expr>) return ResultKind::kNumber;
  if (std::is_same_v<R, Blocks>) return ResultKind::kBlocks;
  if (std::is_same_v<R, Loops>) return ResultKind::kLoops;
  return std::is_same_v<R, Exprs> ? ResultKind::kNumbers : ResultKind::kNone;
}

template <class P>
Primitive row() {
  static_assert(lists_all_members<P>(), "an argument is missing in fields()");
  Primitive result{P::kInfo, result_kind<ResultOf<P>>(), {}, &decode_step<P>, &encode_step<P>, &apply_step<P>, nullptr};
  [[maybe_unused]] const P defaults{};
  for_each_field<P>([&](const auto& f) {
    using Member = typename std::remove_cvref_t<decltype(f)>::Member;
    Param param{f.name, f.doc, kind_of(Tag<Member>()), {}};
    if (!f.is_required) param.otherwise = Codec<Member>::encode(defaults.*f.member);
    result.params.push_back(std::move(param));
  });
  if constexpr (requires(const P& p, Step& context) { p.map_rank(context); })
    result.map_rank = [](const void* step, Step& context) { return static_cast<const P*>(step)->map_rank(context); };
  return result;
}

template <class... Ps>
std::vector<Primitive> rows_of(Steps<Ps...>) {
  return {row<Ps>()...};
}

}  // namespace

std::span<const Primitive> primitives() {
  static const std::vector<Primitive> kRows = rows_of(AllPrimitives());
  return kRows;
}

}  // namespace relaxc::scheduling
