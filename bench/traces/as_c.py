"""Lowered tensor programs (`relaxc opt --passes=...`, before vectors are made) as C, loop by loop.

What TVM hands to LLVM for the same schedule: loops that are vectorized become loops with a pragma, unrolled ones are
written out, `T.max` is `a > b ? a : b`, memory of one thread is on the stack.
"""
import ast
import re

FUNCTIONS = {"T.exp": "expf", "T.sqrt": "sqrtf", "T.rsqrt": "1 / sqrtf", "T.tanh": "tanhf", "T.erf": "erff"}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%", ast.Lt: "<",
             ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "&&", ast.Or: "||"}
UNROLLED_MOST = 4096


def expr(e):
    if isinstance(e, ast.Constant):
        return str(int(e.value)) if isinstance(e.value, bool) else repr(e.value)
    if isinstance(e, ast.Name):
        return e.id
    if isinstance(e, ast.BinOp):
        return f"({expr(e.left)} {OPERATORS[type(e.op)]} {expr(e.right)})"
    if isinstance(e, ast.BoolOp):
        return "(" + f" {OPERATORS[type(e.op)]} ".join(map(expr, e.values)) + ")"
    if isinstance(e, ast.Compare):
        return f"({expr(e.left)} {OPERATORS[type(e.ops[0])]} {expr(e.comparators[0])})"
    if isinstance(e, ast.UnaryOp):
        return ("!" if isinstance(e.op, ast.Not) else "-") + expr(e.operand)
    if isinstance(e, ast.Subscript):
        return f"{expr(e.value)}[{expr(e.slice)}]"
    assert isinstance(e, ast.Call), ast.dump(e)
    name, args = ast.unparse(e.func), [expr(a) for a in e.args]
    if name == "T.float32":
        return f"{float(args[0].strip('()'))!r}f"
    if name in ("T.int64", "T.int32", "T.bool"):
        return args[0]
    if name in ("T.if_then_else", "T.Select"):
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if name in ("T.max", "T.min"):
        return f"{name[2:]}f_({args[0]}, {args[1]})"
    return f"({FUNCTIONS[name]}({', '.join(args)}))"


def number(e):
    return int(ast.literal_eval(e.args[0] if isinstance(e, ast.Call) else e))


class NoVectors(Exception):
    """The body has a branch on the lane, which TVM writes out lane by lane."""


def stride_of(index, var):
    """The stride of an index in a variable, or None; by evaluation, which is enough for sums of products."""
    names = sorted({n.id for n in ast.walk(index) if isinstance(n, ast.Name)} - {"T"})
    tree = compile(ast.Expression(ast.fix_missing_locations(plain(index))), "index", "eval")
    found = set()
    for seed in range(4):
        at = {name: (7 * i + 5 * seed) % 11 for i, name in enumerate(names)}
        values = [eval(tree, {}, {**at, var: lane}) for lane in range(8)]
        found |= {b - a for a, b in zip(values, values[1:])}
    return found.pop() if len(found) == 1 else None


def plain(index):
    class Strip(ast.NodeTransformer):
        def visit_Call(self, node):
            return self.visit(node.args[0])  # T.int64(1)
    return Strip().visit(ast.parse(ast.unparse(index), mode="eval").body)


class Vector:
    """One vectorized loop as statements on vectors of the compiler's."""

    def __init__(self, var, lanes):
        self.var, self.lanes = var, lanes

    def element(self, e):
        index = e.slice
        stride = stride_of(index, self.var)
        at = lambda lane: re.sub(rf"\b{self.var}\b", str(lane), expr(index))
        if stride == 0:
            return None
        if stride == 1:
            return f"(*(f{self.lanes}*)({e.value.id} + {at(0)}))"
        return f"(f{self.lanes}{{{', '.join(f'{e.value.id}[{at(lane)}]' for lane in range(self.lanes))}}})"

    def value(self, e):
        """The text, and whether it is a vector."""
        if isinstance(e, ast.Subscript):
            wide = self.element(e)
            return (wide, True) if wide else (expr(e), False)
        if isinstance(e, ast.BinOp):
            (a, va), (b, vb) = self.value(e.left), self.value(e.right)
            if va != vb:
                a, b = (a, self.splat(b)) if va else (self.splat(a), b)
            return f"({a} {OPERATORS[type(e.op)]} {b})", va or vb
        if isinstance(e, ast.Call) and ast.unparse(e.func) in ("T.max", "T.min"):
            (a, va), (b, vb) = map(self.value, e.args)
            if not va and not vb:
                return expr(e), False
            a, b = a if va else self.splat(a), b if vb else self.splat(b)
            return f"{ast.unparse(e.func)[2:]}v({a}, {b})", True
        if isinstance(e, ast.Name) and e.id == self.var:
            raise NoVectors()
        if isinstance(e, ast.Call) and ast.unparse(e.func) not in ("T.float32", "T.int64"):
            raise NoVectors()
        return expr(e), False

    def splat(self, text):
        return f"splat<f{self.lanes}, {self.lanes}>({text})"

    def statements(self, stmts):
        lines = []
        for s in stmts:
            if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Subscript):
                raise NoVectors()
            if stride_of(s.targets[0].slice, self.var) != 1:
                raise NoVectors()
            text, is_vector = self.value(s.value)
            lines.append(f"{self.element(s.targets[0])} = {text if is_vector else self.splat(text)};")
        return lines


class Writer:
    def __init__(self, threads, vectors):
        self.lines, self.depth, self.threads, self.in_parallel = [], 1, threads, False
        self.vectors, self.widths = vectors, set()

    def add(self, text):
        self.lines.append("  " * self.depth + text)

    def body(self, stmts):
        for s in stmts:
            self.stmt(s)

    def stmt(self, s):
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and ast.unparse(s.value.func) == "T.decl_buffer":
            size = number(s.value.args[0].elts[0])
            big = size * 4 > 1 << 20 or not self.in_parallel
            self.add(f"{'static ' if big else ''}float {s.targets[0].id}[{size}] __attribute__((aligned(64)));")
        elif isinstance(s, ast.Assign):
            self.add(f"{expr(s.targets[0])} = {expr(s.value)};")
        elif isinstance(s, ast.AnnAssign):
            self.add(f"long {s.target.id} = {expr(s.value)};")
        elif isinstance(s, ast.If):
            self.add(f"if ({expr(s.test)}) {{")
            self.inside(s.body)
            if s.orelse:
                self.add("} else {")
                self.inside(s.orelse)
            self.add("}")
        elif isinstance(s, ast.For):
            self.loop(s)
        else:
            call = s.value if isinstance(s, ast.Expr) else None
            assert call and ast.unparse(call.func) in ("T.func_attr", "T.evaluate"), ast.dump(s)

    def inside(self, stmts):
        self.depth += 1
        self.body(stmts)
        self.depth -= 1

    def loop(self, s):
        kind = ast.unparse(s.iter.func)
        names = [s.target.id] if isinstance(s.target, ast.Name) else [t.id for t in s.target.elts]
        bounds = [("0", expr(a)) for a in s.iter.args]
        if kind != "T.grid" and len(bounds) == 2:
            bounds = [(bounds[0][1], bounds[1][1])]
        if kind == "T.vectorized" and self.vectors:
            try:
                lanes = number(s.iter.args[-1])
                lines = Vector(names[0], lanes).statements(s.body)
                self.widths.add(lanes)
                for line in lines:
                    self.add(line)
                return
            except NoVectors:
                pass
        was_parallel = self.in_parallel
        for name, (begin, end) in zip(names, bounds):
            if kind == "T.parallel":
                self.in_parallel = True
                if self.threads > 1:
                    self.add("#pragma omp parallel for schedule(static)")
            if kind == "T.vectorized":
                self.add("VECTORIZED")
            if kind == "T.unroll":
                self.add("UNROLLED")
            self.add(f"for (long {name} = {begin}; {name} < {end}; ++{name}) {{")
            self.depth += 1
        self.body(s.body)
        for _ in names:
            self.depth -= 1
            self.add("}")
        self.in_parallel = was_parallel


HEAD = """#include <math.h>
#define restrict __restrict
static inline float maxf_(float a, float b) { return a > b ? a : b; }
static inline float minf_(float a, float b) { return a < b ? a : b; }
#ifdef __clang__
#define VECTORIZED _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define VECTORIZED _Pragma("GCC ivdep")
#define UNROLLED _Pragma("GCC unroll 4096")
#endif
"""
VECTORS = """
template <class V, int n> static inline V splat(float x) { V v; for (int i = 0; i < n; ++i) v[i] = x; return v; }
template <class V> static inline V maxv(V a, V b) { return a > b ? a : b; }
template <class V> static inline V minv(V a, V b) { return a < b ? a : b; }
"""


def as_c(text, threads=1, vectors=False):
    """The first tensor program of the printed module as `void kernel(float* restrict ...)`; in C++ with `vectors`."""
    module = ast.parse(text)
    cls = next(n for n in module.body if isinstance(n, ast.ClassDef))
    program = next(f for f in cls.body if any("prim_func" in ast.unparse(d) for d in f.decorator_list))
    writer = Writer(threads, vectors)
    writer.body(program.body)
    params = ", ".join(f"float* restrict {a.arg}" for a in program.args.args)
    types = "".join(f"typedef float f{n} __attribute__((vector_size({4 * n}), aligned(4)));\n" for n in sorted(writer.widths))
    head = HEAD + (VECTORS + types + 'extern "C" ' if vectors else "")
    return head + f"void kernel({params}) {{\n" + "\n".join(writer.lines) + "\n}\n"
