// The node machinery: every IR node is an aggregate struct (the payload) with one `fields()` list; handles, boxes,
// and everything mechanical (children, rebuild, equality, hash, substitution, free variables, fallback print: visit.h)
// derive from that list. Nodes are immutable and reference counted; handles are never null.
//
//   struct Cast {                       // the value converted to the node's type
//     Expr value;
//     RELAXC_FIELDS(Cast, value);
//   };
//   Expr e = make(Cast{x}, type, span); if (const Cast* cast = e.as<Cast>()) ... cast->value ...
#pragma once
#include <atomic>
#include <concepts>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "support/check.h"
#include "support/span.h"

// The closed lists of node kinds. A new node: one struct, one entry here.
// clang-format off
#define RELAXC_TYPE_KINDS(X) \
  X(ObjectType) X(PrimType) X(ShapeType) X(TensorType) X(BufferType) X(TupleType) X(SequenceType) \
  X(OptionalType) X(MapType) X(DTensorType) X(FuncType)
#define RELAXC_EXPR_KINDS(X) \
  X(IntImm) X(FloatImm) X(StringImm) X(DTypeImm) X(Var) X(GlobalVar) X(OpRef) X(ExternFunc) X(Constant) \
  X(Binary) X(Not) X(Cast) X(Select) X(Ramp) X(Broadcast) X(Let) X(Lambda) X(BufferLoad) \
  X(Call) X(Tuple) X(TupleGetItem) X(ShapeExpr) X(If) X(SeqExpr) X(Function) X(PrimFunc)
#define RELAXC_STMT_KINDS(X) \
  X(Seq) X(BufferStore) X(For) X(While) X(IfThenElse) X(Bind) X(AllocBuffer) X(Evaluate) X(Assert) X(AttrStmt) X(Block)
// clang-format on
#define RELAXC_NODE_KINDS(X) RELAXC_TYPE_KINDS(X) RELAXC_EXPR_KINDS(X) RELAXC_STMT_KINDS(X)

namespace relaxc {

enum class NodeKind : uint8_t {
#define RELAXC_KIND(name) k##name,
  RELAXC_NODE_KINDS(RELAXC_KIND)
#undef RELAXC_KIND
};
const char* kind_name(NodeKind kind);

template <class T>
struct KindOf;
#define RELAXC_KIND(name)                                \
  struct name;                                           \
  template <>                                            \
  struct KindOf<name> {                                  \
    static constexpr NodeKind value = NodeKind::k##name; \
  };
RELAXC_NODE_KINDS(RELAXC_KIND)
#undef RELAXC_KIND

struct NodeHeader {
  mutable std::atomic<uint32_t> references{0};
  NodeKind kind;
  Span span;
};

// Deletes a node whose last handle is gone; dispatches on the kind.
void destroy_node(const NodeHeader* node);

// An unchecked node pointer on its way into a handle; only cast_handle() and make() make one.
struct RawNode {
  const NodeHeader* node;
};

// Any handle. Copies share the node. Has no ==: say same_node() or structural_equal().
class NodeRef {
 public:
  explicit NodeRef(RawNode raw) : node_(raw.node) { retain(); }
  NodeRef(const NodeRef& other) : node_(other.node_) { retain(); }
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef() {
    if (node_ && node_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_node(node_);
  }

  NodeKind kind() const { return node_->kind; }
  const Span& span() const { return node_->span; }
  const NodeHeader* get() const { return node_; }
  static const char* wanted() { return "a node"; }
  template <class T>
  bool is() const {
    return node_->kind == KindOf<T>::value;
  }
  // Returns the payload when the node is a T, else null.
  template <class T>
  const T* as() const;

 private:
  void retain() const {
    if (node_) node_->references.fetch_add(1, std::memory_order_relaxed);
  }
  const NodeHeader* node_;
};

inline bool same_node(const NodeRef& a, const NodeRef& b) { return a.get() == b.get(); }

constexpr bool is_type_kind(NodeKind kind) { return kind <= NodeKind::kFuncType; }
constexpr bool is_expr_kind(NodeKind kind) { return kind > NodeKind::kFuncType && kind <= NodeKind::kPrimFunc; }
constexpr bool is_stmt_kind(NodeKind kind) { return kind > NodeKind::kPrimFunc; }

// The three families of nodes. cast_handle() uses holds() and wanted(), here and in Ref.
class Type : public NodeRef {
 public:
  using NodeRef::NodeRef;
  static bool holds(NodeKind kind) { return is_type_kind(kind); }
  static const char* wanted() { return "a type"; }
};
class Expr : public NodeRef {
 public:
  using NodeRef::NodeRef;
  const Type& type() const;  // every expression has one; ObjectType when nothing is known
  static bool holds(NodeKind kind) { return is_expr_kind(kind); }
  static const char* wanted() { return "an expression"; }
};
class Stmt : public NodeRef {
 public:
  using NodeRef::NodeRef;
  static bool holds(NodeKind kind) { return is_stmt_kind(kind); }
  static const char* wanted() { return "a statement"; }
};

template <class T>
using FamilyOf = std::conditional_t<is_type_kind(KindOf<T>::value), Type,
                                    std::conditional_t<is_expr_kind(KindOf<T>::value), Expr, Stmt>>;

struct ExprHeader : NodeHeader {
  explicit ExprHeader(Type t) : type(std::move(t)) {}
  Type type;
};

template <class T>
struct Box final : std::conditional_t<is_expr_kind(KindOf<T>::value), ExprHeader, NodeHeader> {
  using Header = std::conditional_t<is_expr_kind(KindOf<T>::value), ExprHeader, NodeHeader>;
  template <class... HeaderArgs>
  Box(const Span& s, T p, HeaderArgs&&... args) : Header(std::forward<HeaderArgs>(args)...), payload(std::move(p)) {
    this->kind = KindOf<T>::value;
    this->span = s;
  }
  T payload;
};

template <class T>
const T* NodeRef::as() const {
  return is<T>() ? &static_cast<const Box<T>*>(node_)->payload : nullptr;
}
inline const Type& Expr::type() const { return static_cast<const ExprHeader*>(get())->type; }

// A handle known to hold a T.
template <class T>
class Ref : public FamilyOf<T> {
 public:
  using Target = T;
  using FamilyOf<T>::FamilyOf;
  const T* operator->() const { return &static_cast<const Box<T>*>(this->get())->payload; }
  const T& operator*() const { return *operator->(); }
  static bool holds(NodeKind kind) { return kind == KindOf<T>::value; }
  static const char* wanted() { return kind_name(KindOf<T>::value); }
};

// Downcasts a handle; a check fails when the node is of another kind or family.
template <class To>
To cast_handle(const NodeRef& node) {
  RELAXC_CHECK(To::holds(node.kind()), "expected {}, got {}", To::wanted(), kind_name(node.kind()));
  return To(RawNode{node.get()});
}
// cast<Var>(expr): the handle, checked. try_cast<Var>(expr): nullopt when it is another kind.
template <class T>
Ref<T> cast(const NodeRef& node) {
  return cast_handle<Ref<T>>(node);
}
template <class T>
std::optional<Ref<T>> try_cast(const NodeRef& node) {
  if (!node.is<T>()) return std::nullopt;
  return cast_handle<Ref<T>>(node);
}

// make(payload, type, span) for expressions, make(payload, span) for types and statements. These only box: the
// constructors of expr.h, stmt.h and type.h check the operands and compute the type.
template <class T>
  requires(is_expr_kind(KindOf<T>::value))
Ref<T> make(T payload, Type type, const Span& span = {}) {
  return Ref<T>(RawNode{new Box<T>(span, std::move(payload), std::move(type))});
}
template <class T>
  requires(!is_expr_kind(KindOf<T>::value))
Ref<T> make(T payload, const Span& span = {}) {
  return Ref<T>(RawNode{new Box<T>(span, std::move(payload))});
}

// ---- Fields -------------------------------------------------------------------------------------------------------

enum class Role : uint8_t {
  kField,
  kBinds,      // introduces the variable it names
  kBindsDeep,  // a parameter or cast: its type also introduces the symbolic dims that occur bare in it
  kHint,       // ignored by equality and hash (names)
};

template <class C, class M>
struct Field {
  using Class = C;
  using Member = M;
  const char* name;
  M C::* member;
  Role role;
};
// field("value", &Let::value) and field("var", &Let::var, binds) are entries of fields().
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::* member, Role role = Role::kField) {
  return {name, member, role};
}
inline constexpr Role binds = Role::kBinds, binds_deep = Role::kBindsDeep, hint = Role::kHint;

// Returns a function that calls another one with all items; fields() is such a list. Compiles much faster than a
// std::tuple.
template <class... Items>
constexpr auto list(Items... items) {
  return [... items = std::move(items)](auto&& use) { return use(items...); };
}

// RELAXC_FIELDS(Let, value, (binds)var, body) is the fields() of a struct; a bare name has Role::kField.
#define RELAXC_FIELDS(T, ...) \
  static constexpr auto fields() { return list(RELAXC_RESCAN(RELAXC_EACH_FIELD(T, __VA_ARGS__))); }
// Each rescan replaces the next RELAXC_NEXT_FIELD.
#define RELAXC_EACH_FIELD(T, item, ...) \
  RELAXC_FIELD(T, item) __VA_OPT__(, RELAXC_NEXT_FIELD RELAXC_NO_ARGUMENTS(T, __VA_ARGS__))
#define RELAXC_NEXT_FIELD() RELAXC_EACH_FIELD
#define RELAXC_NO_ARGUMENTS ()
#define RELAXC_RESCAN(...) RELAXC_RESCAN4(RELAXC_RESCAN4(RELAXC_RESCAN4(__VA_ARGS__)))
#define RELAXC_RESCAN4(...) RELAXC_RESCAN1(RELAXC_RESCAN1(RELAXC_RESCAN1(RELAXC_RESCAN1(__VA_ARGS__))))
#define RELAXC_RESCAN1(...) __VA_ARGS__
// `RELAXC_TWO (binds)var` is two arguments, so that the third one is another macro.
#define RELAXC_FIELD(T, item) RELAXC_THIRD(RELAXC_TWO item, RELAXC_FIELD_OF_ROLE, RELAXC_PLAIN_FIELD, )(T, item)
#define RELAXC_TWO(role) , role
#define RELAXC_THIRD(...) RELAXC_THIRD_OF(__VA_ARGS__)
#define RELAXC_THIRD_OF(a, b, c, ...) c
#define RELAXC_PLAIN_FIELD(T, member) field(#member, &T::member)
#define RELAXC_FIELD_OF_ROLE(T, item) RELAXC_MAKE_FIELD(T, RELAXC_SPLIT item)
#define RELAXC_SPLIT(role) role,
#define RELAXC_MAKE_FIELD(...) RELAXC_MAKE_FIELD_OF(__VA_ARGS__)
#define RELAXC_MAKE_FIELD_OF(T, role, member) field(#member, &T::member, role)

template <class T>
concept HasFields = requires { T::fields(); };

template <class T, class F>
constexpr void for_each_field(F&& f) {
  T::fields()([&](const auto&... fields) { (f(fields), ...); });
}
template <class T>
constexpr size_t field_count() {
  return T::fields()([](const auto&... fields) { return sizeof...(fields); });
}

// Returns the number of members of an aggregate: the largest N for which T{any, … N times} compiles.
struct AnyMember {
  template <class T>
    requires(!std::same_as<T, AnyMember>)
  operator T() const;
};
template <class T, size_t... I>
constexpr bool takes_members(std::index_sequence<I...>) {
  return requires { T{(void(I), std::declval<AnyMember>())...}; };
}
template <class T, size_t N = 12>
constexpr size_t member_count() {
  if constexpr (N == 0 || takes_members<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return member_count<T, N - 1>();
  }
}
// Returns "value" for &Cast::value, taken from the compiler's spelling of the template's argument.
template <auto kMember>
constexpr std::string_view member_name() {
  constexpr std::string_view kMarker = "kMember = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kMarker) + kMarker.size());
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}
template <size_t N>
constexpr auto nth(const auto& first, const auto&... rest) {
  if constexpr (N == 0) {
    return first;
  } else {
    return nth<N - 1>(rest...);
  }
}
template <class T, size_t N>
constexpr auto nth_field() {
  return T::fields()([](const auto&... fields) { return nth<N>(fields...); });
}
// False when fields() leaves a member out, lists one twice, or names it like another. visit.cc checks every node.
template <class T>
constexpr bool lists_all_members() {
  return []<size_t... I>(std::index_sequence<I...>) {
    constexpr std::string_view names[] = {nth_field<T, I>().name..., ""};
    for (size_t i = 0; i < sizeof...(I); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (names[i] == names[j]) return false;
      }
    }
    return member_count<T>() == sizeof...(I) && ((names[I] == member_name<nth_field<T, I>().member>()) && ...);
  }(std::make_index_sequence<field_count<T>()>());
}

}  // namespace relaxc
