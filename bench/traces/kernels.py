#!/usr/bin/env python3
"""Kernels as TensorIR with schedules in the form of MetaSchedule's traces for CPUs.

    kernels.py DIR           writes DIR/<kernel>.py: a module, and behind it its schedule
    kernels.py DIR --seed N  the same with decisions drawn at random

The sketches are those of MetaSchedule's space for the target llvm: multi-level tiling (SSRSRS) with a write cache or the
consumer in its place, compute_at of the padding, rfactor, inlining, a layout rewrite of weights; behind them the steps
of its postprocessors (parallel loops, vectors, unroll pragmas, decompose_reduction). The decisions below are by hand:
a tile of results in registers, its operands in the L1 cache. `relaxc compile FILE --emit=trace` prints a schedule with
all its random variables, as a tuner would.
"""
import random
import sys
from pathlib import Path

F32_LEAST = "T.float32(-3.4028234663852886e38)"


class Kernel:
    """Collects the text of a module and of its schedule."""

    def __init__(self, name, params, result, draw=None):
        self.name, self.params, self.result, self.draw = name, params, result, draw
        self.body, self.steps, self.names = [], [], 0
        self.buffers = dict(params + [result])

    # ---- The module

    def block(self, name, shape, reduced, value, init=None, attrs=""):
        """A block of its own buffer (or of the result), with axes v0, v1, ...; `value` may hold {name}."""
        if name not in self.buffers:
            self.buffers[name] = shape
            self.body.insert(0, f"{name} = T.alloc_buffer({tuple(shape)})")
        extents = list(shape) + list(reduced)
        loops = ", ".join(f"i{i}" for i in range(len(extents)))
        axes = ", ".join(f"v{i}" for i in range(len(extents)))
        kinds = "S" * len(shape) + "R" * len(reduced)
        at = f"{name}[{', '.join(f'v{i}' for i in range(len(shape)))}]"
        lines = [f"for {loops} in T.grid({', '.join(map(str, extents))}):", f"    with T.block(\"{name}\"):",
                 f"        {axes} = T.axis.remap(\"{kinds}\", [{loops}])"]
        if len(extents) == 1:
            lines[0] = f"for {loops} in range({extents[0]}):"
        if attrs:
            lines.append(f"        T.block_attr({{{attrs}}})")
        if init:
            lines += ["        with T.init():", f"            {at} = {init}"]
        lines.append(f"        {at} = {value.replace('{at}', at)}")
        self.body += lines

    def text(self):
        def buffer(entry):
            return f'{entry[0]}: T.Buffer({tuple(entry[1])}, "float32")'

        params = ", ".join(map(buffer, self.params + [self.result]))
        inputs = ", ".join(f'{n}: R.Tensor({tuple(s)}, "float32")' for n, s in self.params)
        names = ", ".join(n for n, _ in self.params) + ","
        out = f'R.Tensor({tuple(self.result[1])}, "float32")'
        lines = ["@I.ir_module", "class Module:", "    @T.prim_func", f"    def {self.name}({params}):",
                 '        T.func_attr({"tir.noalias": T.bool(True)})']
        lines += ["        " + line for line in self.body]
        lines += ["", "    @R.function", f"    def main({inputs}) -> {out}:",
                  f"        return R.call_tir(Module.{self.name}, ({names}), out_sinfo={out})", "", "",
                  f'@S.schedule("{self.name}")', "def apply_trace(sch):"]
        return "\n".join(lines + ["    " + step for step in self.steps]) + "\n"

    # ---- The schedule

    def add(self, text):
        self.steps.append(text)

    def fresh(self, kind, count=1):
        names = [f"{kind}{self.names + i}" for i in range(count)]
        self.names += count
        return names

    def get(self, name):
        b, = self.fresh("b")
        self.add(f'{b} = sch.get_block(name="{name}", func_name="main")')
        return b

    def loops(self, block, count):
        ls = self.fresh("l", count)
        self.add(f"{', '.join(ls)}{',' if count == 1 else ''} = sch.get_loops(block={block})")
        return ls

    def tile(self, loop, extent, wanted):
        """sample_perfect_tile and split; `wanted` are the factors, outermost first."""
        if self.draw:
            wanted = drawn_tile(self.draw, extent, len(wanted))
        product = 1
        for factor in wanted:
            product *= factor
        assert product == extent, (self.name, extent, wanted)
        vs, ls = self.fresh("v", len(wanted)), self.fresh("l", len(wanted))
        self.add(f"{', '.join(vs)} = sch.sample_perfect_tile(loop={loop}, n={len(wanted)}, max_innermost_factor=64, "
                 f"decision={list(wanted)})")
        self.add(f"{', '.join(ls)} = sch.split(loop={loop}, factors=[{', '.join(vs)}], preserve_unit_iters=True, "
                 "disable_predication=False)")
        return ls

    def multi_level(self, block, spatial, reduced, levels=((0, 1), (2,), (3,))):
        """SSRSRS over tiles [(extent, factors)], four for each spatial loop and two for each other. Returns the bands."""
        self.add(f'sch.annotate(block_or_loop={block}, ann_key="meta_schedule.tiling_structure", ann_val="SSRSRS")')
        loops = self.loops(block, len(spatial) + len(reduced))
        s = [self.tile(loop, *one) for loop, one in zip(loops, spatial)]
        r = [self.tile(loop, *one) for loop, one in zip(loops[len(spatial):], reduced)]
        bands = [[t[0] for t in s], [t[1] for t in s], [t[0] for t in r], [t[2] for t in s], [t[1] for t in r],
                 [t[3] for t in s]]
        self.add(f"sch.reorder({', '.join(loop for band in bands for loop in band)})")
        return bands

    def unroll_note(self, root_step):
        """The annotations of the sketch, which the postprocessors take away again."""
        root = self.get("root")
        if self.draw:
            root_step = self.draw.choice([0, 16, 64, 512])
        v, = self.fresh("v")
        choice = [0, 16, 64, 512].index(root_step)
        self.add(f'sch.annotate(block_or_loop={root}, ann_key="meta_schedule.parallel", ann_val=32)')
        self.add(f'sch.annotate(block_or_loop={root}, ann_key="meta_schedule.vectorize", ann_val=64)')
        self.add(f"{v} = sch.sample_categorical(candidates=[0, 16, 64, 512], probs=[0.25, 0.25, 0.25, 0.25], "
                 f"decision={choice})")
        self.add(f'sch.annotate(block_or_loop={root}, ann_key="meta_schedule.unroll_explicit", ann_val={v})')
        self.step = root_step

    def enter_postproc(self):
        self.add("sch.enter_postproc()")
        root = self.get("root")
        for key in ("parallel", "vectorize", "unroll_explicit"):
            self.add(f'sch.unannotate(block_or_loop={root}, ann_key="meta_schedule.{key}")')

    def rewrite(self, name, loops, parallel=0, vector=0):
        """RewriteParallelVectorizeUnroll of one block with so many loops: the first `parallel` and the last `vector`."""
        ls = self.loops(self.get(name), loops)
        first = ls[0]
        if parallel:
            first, = self.fresh("l")
            self.add(f"{first} = sch.fuse({', '.join(ls[:parallel])}, preserve_unit_iters=True)")
            self.add(f"sch.parallel(loop={first})")
        if vector:
            last, = self.fresh("l")
            self.add(f"{last} = sch.fuse({', '.join(ls[-vector:])}, preserve_unit_iters=True)")
            self.add(f"sch.vectorize(loop={last})")
        if self.step:
            self.add(f'sch.annotate(block_or_loop={first}, ann_key="pragma_auto_unroll_max_step", ann_val={self.step})')
            self.add(f'sch.annotate(block_or_loop={first}, ann_key="pragma_unroll_explicit", ann_val=1)')

    def decompose(self, name, loops, at):
        block = self.get(name)
        ls = self.loops(block, loops)
        b, = self.fresh("b")
        self.add(f"{b} = sch.decompose_reduction(block={block}, loop={ls[at]})")


def drawn_tile(draw, extent, count):
    """Prime factors dealt at random; the innermost at most 64, as max_innermost_factor says."""
    while True:
        tile, rest, prime = [1] * count, extent, 2
        while rest > 1:
            if rest % prime:
                prime += 1
                continue
            tile[draw.randrange(count)] *= prime
            rest //= prime
        if tile[-1] <= 64:
            return tile


def conv(k, n, ci, h, co, size, stride, pad, tiles, unroll=512, pad_at=None, depthwise=False, pad_vector=1, write_at=1):
    """conv2d_nchw or depthwise_conv2d_nchw, with bias and relu. tiles: f, y, x, rc, ry, rx."""
    o = (h + 2 * pad - size) // stride + 1
    hp = h + 2 * pad
    if pad:
        k.block("pad_temp", (n, ci, hp, hp), (),
                f"T.if_then_else({pad} <= v2 and v2 < {h + pad} and {pad} <= v3 and v3 < {h + pad}, "
                f"p0[v0, v1, v2 - {pad}, v3 - {pad}], T.float32(0))")
    data = "pad_temp" if pad else "p0"
    anchor = "depthwise_conv2d_nchw" if depthwise else "conv2d_nchw"
    if depthwise:
        k.block(anchor, (n, co, o, o), (size, size),
                f"{{at}} + {data}[v0, v1, v2 * {stride} + v4, v3 * {stride} + v5] * p1[v1, 0, v4, v5]", "T.float32(0)")
    else:
        k.block(anchor, (n, co, o, o), (ci, size, size),
                f"{{at}} + {data}[v0, v4, v2 * {stride} + v5, v3 * {stride} + v6] * p1[v1, v4, v5, v6]", "T.float32(0)")
    k.block("T_add", (n, co, o, o), (), f"{anchor}[v0, v1, v2, v3] + p2[{'v0' if n == 1 else 0}, v1, 0, 0]")
    k.block("T_relu", (n, co, o, o), (), "T.max(T_add[v0, v1, v2, v3], T.float32(0))")
    b_conv = k.get(anchor)
    b_add = k.get("T_add")
    k.add(f"sch.compute_inline(block={b_add})")
    spatial = [(n, [n, 1, 1, 1]), (co, tiles["f"]), (o, tiles["y"]), (o, tiles["x"])]
    reduced = [] if depthwise else [(ci, tiles["rc"])]
    reduced += [(size, tiles["ry"]), (size, tiles["rx"])]
    bands = k.multi_level(b_conv, spatial, reduced)
    consumer, = k.fresh("b")
    k.add(f"{consumer}, = sch.get_consumers(block={b_conv})")
    if k.draw:
        write_at = k.draw.choice([0, 1])
    k.add(f"sch.reverse_compute_at(block={consumer}, loop={bands[write_at][-1]}, preserve_unit_loops=True, index=-1)")
    k.unroll_note(unroll)
    inlined = False
    if pad:
        b_pad = k.get("pad_temp")
        where = pad_at if not k.draw else k.draw.choice([None, 3, 7, "inline"])
        if where == "inline":
            inlined = True
            k.add(f"sch.compute_inline(block={b_pad})")
        else:
            l, = k.fresh("l")
            k.add(f"{l} = sch.sample_compute_location(block={b_pad}, decision={-1 if where is None else where})")
            k.add(f"sch.compute_at(block={b_pad}, loop={l}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    loops = 4 * 4 + 2 * len(reduced)
    outer = 4
    vector = k.draw.choice([0, 1]) if k.draw else 1
    if pad and not inlined:
        around = 0 if where is None else where + 1
        k.rewrite("pad_temp", around + 4, parallel=3 if where is None else outer if around >= outer else 0, vector=pad_vector)
        if around >= outer:  # the loops around are one now, and parallel
            loops -= outer - 1
            outer = 0
    fused = 4 if outer else 0
    k.rewrite(anchor, loops, parallel=fused, vector=vector)
    loops -= fused - 1 if fused else 0
    k.rewrite("T_relu", (1 + 4 * write_at) + 4, vector=1)
    k.decompose(anchor, loops, 1 + 4)


def conv_nhwc(k, h, ci, co, size, tiles, unroll=64):
    pad, hp = size // 2, h + 2 * (size // 2)
    k.block("pad_temp", (1, hp, hp, ci), (),
            f"T.if_then_else({pad} <= v1 and v1 < {h + pad} and {pad} <= v2 and v2 < {h + pad}, "
            f"p0[v0, v1 - {pad}, v2 - {pad}, v3], T.float32(0))")
    k.block("conv2d_nhwc", (1, h, h, co), (size, size, ci),
            "{at} + pad_temp[v0, v1 + v4, v2 + v5, v6] * p1[v4, v5, v6, v3]", "T.float32(0)")
    b = k.get("conv2d_nhwc")
    c, = k.fresh("b")
    bands = k.multi_level(b, [(1, [1, 1, 1, 1]), (h, tiles["y"]), (h, tiles["x"]), (co, tiles["f"])],
                          [(size, tiles["ry"]), (size, tiles["rx"]), (ci, tiles["rc"])])
    k.add(f'{c} = sch.cache_write(block={b}, write_buffer_index=0, storage_scope="global")')
    k.add(f"sch.reverse_compute_at(block={c}, loop={bands[1][-1]}, preserve_unit_loops=True, index=-1)")
    k.unroll_note(unroll)
    k.enter_postproc()
    k.rewrite("pad_temp", 4, parallel=3, vector=1)
    k.rewrite("conv2d_nhwc", 22, parallel=4, vector=1)
    k.rewrite("conv2d_nhwc_global", 9, vector=1)
    k.decompose("conv2d_nhwc", 19, 5)


def pool_max(k, c, h, pad_at=2):
    o = h // 2
    k.block("pad_temp", (1, c, h + 2, h + 2), (),
            f"T.if_then_else(1 <= v2 and v2 < {h + 1} and 1 <= v3 and v3 < {h + 1}, p0[v0, v1, v2 - 1, v3 - 1], {F32_LEAST})")
    k.block("pool_max", (1, c, o, o), (3, 3), "T.max({at}, pad_temp[v0, v1, v2 * 2 + v4, v3 * 2 + v5])", F32_LEAST,
            '"schedule_rule": "meta_schedule.pool_max"')
    b = k.get("pad_temp")
    k.unroll_note(64)
    where = k.draw.choice([-1, 1, 2, 3, -2]) if k.draw else pad_at
    if where == -2:
        k.add(f"sch.compute_inline(block={b})")
    else:
        l, = k.fresh("l")
        k.add(f"{l} = sch.sample_compute_location(block={b}, decision={where})")
        k.add(f"sch.compute_at(block={b}, loop={l}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    loops = 6
    if where == -1:
        k.rewrite("pad_temp", 4, parallel=3, vector=1)
    if where > 0:
        k.rewrite("pad_temp", where + 1 + 4, parallel=2, vector=1)
        loops = 5
    else:
        k.rewrite("pool_max", 6, parallel=3)
        loops = 4
    k.decompose("pool_max", loops, loops - 3 if where != 1 else 1)


def pool_avg(k, c, h):
    k.block("adaptive_pool_sum", (1, c, 1, 1), (h, h), "{at} + p0[v0, v1, v2 + v4, v3 + v5]", "T.float32(0)",
            '"schedule_rule": "meta_schedule.adaptive_pool_avg"')
    k.block("adaptive_pool_avg", (1, c, 1, 1), (), f"adaptive_pool_sum[v0, v1, v2, v3] * T.float32({1 / (h * h)!r})")
    b = k.get("adaptive_pool_sum")
    k.unroll_note(64)
    l, = k.fresh("l")
    k.add(f"{l} = sch.sample_compute_location(block={b}, decision=1)")
    k.add(f"sch.compute_at(block={b}, loop={l}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    k.rewrite("adaptive_pool_sum", 8, parallel=2)
    k.decompose("adaptive_pool_sum", 7, 5)


def dense(k, m, n, reduced, tile=(32, 16)):
    """T_matmul_NT by rfactor, whose partial results are the lanes of a vector."""
    k.block("T_matmul_NT", (m, n), (reduced,), "{at} + p0[v0, v2] * p1[v1, v2]", "T.float32(0)",
            '"layout_free_placeholders": [1]')
    k.block("T_add", (m, n), (), "T_matmul_NT[v0, v1] + p2[v0, v1]")
    b = k.get("T_matmul_NT")
    ls = k.loops(b, 3)
    split = k.tile(ls[2], reduced, tile)
    rf, = k.fresh("b")
    k.add(f"{rf} = sch.rfactor(loop={split[1]}, factor_axis=2)")
    k.add(f'sch.annotate(block_or_loop={b}, ann_key="meta_schedule.random_compute_producer", ann_val=1)')
    k.unroll_note(64)
    k.add(f'sch.unannotate(block_or_loop={b}, ann_key="meta_schedule.random_compute_producer")')
    ls = k.loops(k.get("T_add"), 2)
    k.add(f"sch.compute_at(block={b}, loop={ls[1]}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    k.rewrite("T_matmul_NT_rf", 4, parallel=2, vector=1)
    k.decompose("T_matmul_NT_rf", 3, 1)
    k.rewrite("T_matmul_NT", 5, parallel=2)
    k.decompose("T_matmul_NT", 4, 1)


def softmax(k, rows, columns, unroll=64, rf=None):
    k.block("T_softmax_maxelem", (rows,), (columns,), "T.max({at}, p0[v0, v1])", F32_LEAST)
    k.block("T_softmax_exp", (rows, columns), (), "T.exp(p0[v0, v1] - T_softmax_maxelem[v0])")
    k.block("T_softmax_expsum", (rows,), (columns,), "{at} + T_softmax_exp[v0, v1]", "T.float32(0)")
    k.block("T_softmax_norm", (rows, columns), (), "T_softmax_exp[v0, v1] / T_softmax_expsum[v0]", None, '"axis": 1')
    k.unroll_note(unroll)
    if rf:
        b = k.get("T_softmax_expsum")
        split = k.tile(k.loops(b, 2)[1], columns, rf)
        k.add(f"sch.rfactor(loop={split[1]}, factor_axis=1)")
    order = ["T_softmax_expsum"] + (["T_softmax_expsum_rf"] if rf else []) + ["T_softmax_exp", "T_softmax_maxelem"]
    for name in order:
        b = k.get(name)
        l, = k.fresh("l")
        k.add(f"{l} = sch.sample_compute_location(block={b}, decision=0)")
        k.add(f"sch.compute_at(block={b}, loop={l}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    k.rewrite("T_softmax_maxelem", 3, parallel=1)
    k.decompose("T_softmax_maxelem", 3, 2)
    if rf:
        k.decompose("T_softmax_expsum_rf", 4, 3)
    k.decompose("T_softmax_expsum", 3, 1 if rf else 2)


def layer_norm(k, rows, columns):
    k.block("x_sum", (rows,), (columns,), "{at} + p0[v0, v1]", "T.float32(0)")
    k.block("x_squares", (rows,), (columns,), "{at} + p0[v0, v1] * p0[v0, v1]", "T.float32(0)")
    n = f"T.float32({1 / columns!r})"
    k.block("T_layer_norm", (rows, columns), (),
            f"(p0[v0, v1] - x_sum[v0] * {n}) * T.rsqrt(x_squares[v0] * {n} - x_sum[v0] * {n} * (x_sum[v0] * {n})"
            " + T.float32(1e-05)) * p1[v1] + p2[v1]")
    k.unroll_note(16)
    rf = []
    for name in ("x_sum", "x_squares"):
        b = k.get(name)
        ls = k.loops(b, 2)
        split = k.tile(ls[1], columns, [columns // 64, 64])
        part, = k.fresh("b")
        k.add(f"{part} = sch.rfactor(loop={split[1]}, factor_axis=1)")
        rf.append((name, b, part))
    outer = k.loops(k.get("T_layer_norm"), 2)[0]
    for name, b, part in rf:
        k.add(f"sch.compute_at(block={b}, loop={outer}, preserve_unit_loops=True, index=-1)")
    k.enter_postproc()
    for name, b, part in rf:
        k.rewrite(name + "_rf", 3, parallel=1, vector=1)
        k.decompose(name + "_rf", 3, 1)
        k.decompose(name, 3, 1)
    k.rewrite("T_layer_norm", 2, parallel=1)


def matmul(k, batch, m, n, reduced, tiles, unroll=64, layout=False):
    """T_batch_matmul_NN, or with `layout` a product whose weights are rewritten into panels."""
    lead = (batch,) if batch else ()
    if batch:
        k.block("T_batch_matmul_NN", (batch, m, n), (reduced,), "{at} + p0[v0, v1, v3] * p1[v0, v3, v2]", "T.float32(0)",
                '"layout_free_placeholders": [1]')
    else:
        k.block("T_matmul_NN", (m, n), (reduced,), "{at} + p0[v0, v2] * p1[v2, v1]", "T.float32(0)",
                '"layout_free_placeholders": [1]')
    name = "T_batch_matmul_NN" if batch else "T_matmul_NN"
    b = k.get(name)
    spatial = [(batch, tiles["b"])] if batch else []
    bands = k.multi_level(b, spatial + [(m, tiles["y"]), (n, tiles["x"])], [(reduced, tiles["k"])])
    c, = k.fresh("b")
    k.add(f'{c} = sch.cache_write(block={b}, write_buffer_index=0, storage_scope="global")')
    k.add(f"sch.reverse_compute_at(block={c}, loop={bands[1][-1]}, preserve_unit_loops=True, index=-1)")
    k.unroll_note(unroll)
    k.enter_postproc()
    dims = len(spatial) + 2
    k.rewrite(name, 4 * dims + 2, parallel=dims, vector=1)
    k.rewrite(name + "_global", 1 + dims + dims, vector=1)
    k.decompose(name, 3 * dims + 3, 1 + dims)
    if layout:
        width = tiles["x"][-1] * tiles["x"][-2]
        r, = k.fresh("b")
        k.add(f'{r} = sch.cache_read(block={b}, read_buffer_index=2, storage_scope="global")')
        k.add(f'sch.transform_layout(block={b}, buffer=("read", 2), index_map=lambda i0, i1: '
              f"(i1 // {width}, i0, i1 % {width}), pad_value=None, assume_injective_transform=True)")
        k.add(f'sch.annotate(block_or_loop={r}, ann_key="meta_schedule.layout_rewrite_preproc", ann_val=True)')


def conv_params(n, ci, h, co, size, stride, pad, depthwise=False):
    o = (h + 2 * pad - size) // stride + 1
    weight = (co, 1 if depthwise else ci, size, size)
    return [("p0", (n, ci, h, h)), ("p1", weight), ("p2", (1, co, 1, 1))], ("T_relu", (n, co, o, o))


def as_conv(*shape, **how):
    def make(name, draw):
        k = Kernel(name, *conv_params(*shape, depthwise=how.get("depthwise", False)), draw)
        conv(k, *shape, **how)
        return k
    return make


def simple(params, result, build, *args, **how):
    def make(name, draw):
        k = Kernel(name, params, result, draw)
        build(k, *args, **how)
        return k
    return make


KERNELS = {
    "conv1x1s2": as_conv(1, 64, 56, 128, 1, 2, 0, tiles={
        "f": [8, 1, 1, 16], "y": [2, 14, 1, 1], "x": [1, 2, 1, 14], "rc": [64, 1], "ry": [1, 1], "rx": [1, 1]}, unroll=64),
    "conv3x3s2": as_conv(1, 128, 28, 256, 3, 2, 1, tiles={
        "f": [16, 1, 1, 16], "y": [1, 14, 1, 1], "x": [1, 1, 1, 14], "rc": [128, 1], "ry": [1, 3], "rx": [1, 3]}),
    "conv3x3": as_conv(1, 64, 56, 64, 3, 1, 1, tiles={
        "f": [16, 1, 1, 4], "y": [7, 8, 1, 1], "x": [1, 1, 1, 56], "rc": [64, 1], "ry": [1, 3], "rx": [1, 3]}, unroll=64),
    "conv3x3_inline": as_conv(1, 64, 56, 64, 3, 1, 1, pad_at="inline", tiles={
        "f": [16, 1, 1, 4], "y": [7, 8, 1, 1], "x": [1, 1, 1, 56], "rc": [64, 1], "ry": [1, 3], "rx": [1, 3]}, unroll=64),
    "conv7x7s2": as_conv(1, 3, 224, 64, 7, 2, 3, pad_at=3, tiles={
        "f": [1, 4, 1, 16], "y": [28, 4, 1, 1], "x": [1, 7, 1, 16], "rc": [3, 1], "ry": [7, 1], "rx": [1, 7]}),
    "conv7x7s2_long": as_conv(1, 3, 224, 64, 7, 2, 3, pad_at=3, tiles={
        "f": [1, 8, 1, 8], "y": [28, 4, 1, 1], "x": [1, 4, 1, 28], "rc": [3, 1], "ry": [7, 1], "rx": [1, 7]}),
    "depthwise3x3": as_conv(1, 144, 56, 144, 3, 1, 1, depthwise=True, pad_at=3, tiles={
        "f": [144, 1, 1, 1], "y": [1, 14, 1, 4], "x": [1, 1, 1, 56], "ry": [1, 3], "rx": [1, 3]}, unroll=64),
    "conv2d_nhwc": simple([("p0", (1, 56, 56, 64)), ("p1", (3, 3, 64, 64))], ("conv2d_nhwc", (1, 56, 56, 64)), conv_nhwc, 56,
                          64, 64, 3, tiles={"y": [28, 2, 1, 1], "x": [1, 7, 1, 8], "f": [1, 2, 1, 32], "ry": [3, 1],
                                            "rx": [3, 1], "rc": [16, 4]}),
    "max_pool": simple([("p0", (1, 64, 112, 112))], ("pool_max", (1, 64, 56, 56)), pool_max, 64, 112),
    "max_pool_inline": simple([("p0", (1, 64, 112, 112))], ("pool_max", (1, 64, 56, 56)), pool_max, 64, 112, pad_at=-2),
    "global_avg_pool": simple([("p0", (1, 512, 7, 7))], ("adaptive_pool_avg", (1, 512, 1, 1)), pool_avg, 512, 7),
    "dense": simple([("p0", (1, 512)), ("p1", (1000, 512)), ("p2", (1, 1000))], ("T_add", (1, 1000)), dense, 1, 1000, 512),
    "softmax": simple([("p0", (128, 1000))], ("T_softmax_norm", (128, 1000)), softmax, 128, 1000),
    "softmax_rfactor": simple([("p0", (128, 1024))], ("T_softmax_norm", (128, 1024)), softmax, 128, 1024, rf=(16, 64)),
    "layer_norm": simple([("p0", (128, 768)), ("p1", (768,)), ("p2", (768,))], ("T_layer_norm", (128, 768)), layer_norm, 128,
                         768),
    "batch_matmul": simple([("p0", (12, 128, 64)), ("p1", (12, 64, 128))], ("T_batch_matmul_NN", (12, 128, 128)), matmul, 12,
                           128, 128, 64, {"b": [12, 1, 1, 1], "y": [2, 8, 1, 8], "x": [1, 4, 1, 32], "k": [16, 4]}),
    "matmul_layout": simple([("p0", (128, 768)), ("p1", (768, 768))], ("T_matmul_NN", (128, 768)), matmul, 0, 128, 768, 768,
                            {"y": [4, 4, 1, 8], "x": [24, 1, 1, 32], "k": [192, 4]}, layout=True),
}


def write(folder, seed=None, names=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in KERNELS.items():
        if not names or name in names:
            draw = random.Random(f"{seed} {name}") if seed is not None else None
            (folder / f"{name}.py").write_text(make(name, draw).text())


if __name__ == "__main__":
    write(Path(sys.argv[1]), *([sys.argv[3]] if "--seed" in sys.argv[2:] else []))
