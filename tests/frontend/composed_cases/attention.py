"""Attention, rotary positions, caches, linear attention of ai.onnx."""
import numpy as np
from make_composed import Group

INF = np.float32(np.inf)


def softmax(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def heads_of(x, heads):
    b, s, h = x.shape
    return x.reshape(b, s, heads, h // heads).transpose(0, 2, 1, 3)


def attention(q, k, v, mask=None, past_key=None, past_value=None, lengths=None, *, q_num_heads=0, kv_num_heads=0,
              scale=None, is_causal=0, softcap=0.0, softmax_precision=1, qk_matmul_output_mode=0, local_window_size=-1):
    """One query at a time. A query that sees no key gives 0."""
    flat, dtype = q.ndim == 3, q.dtype
    if flat:
        q, k, v = heads_of(q, q_num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    batch, heads, queries, size = q.shape
    keys, group = k.shape[2], heads // k.shape[1]
    scale = 1 / np.sqrt(size) if scale is None else scale
    y = np.zeros((batch, heads, queries, v.shape[3]), np.float64)
    shown = np.zeros((batch, heads, queries, keys), np.float64)
    full = None
    if mask is not None:
        if mask.shape[-1] < keys:
            width = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
            mask = np.pad(mask, width, constant_values=False if mask.dtype == bool else -INF)
        if mask.ndim == 3 and mask.shape[0] not in (1, heads):
            mask = mask[:, None]  # one per batch element
        full = np.broadcast_to(mask, (batch, heads, queries, keys))
    is_causal = is_causal or local_window_size > 0
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                raw = (k[b, h // group].astype(np.float64) @ q[b, h, i].astype(np.float64)) * scale
                capped = np.tanh(raw / softcap) * softcap if softcap else raw
                row = capped.copy()
                offset = past if past_key is not None or lengths is None else int(lengths[b]) - queries
                for j in range(keys):
                    if full is not None:
                        row[j] = (row[j] if full[b, h, i, j] else -np.inf) if full.dtype == bool else row[j] + full[b, h, i, j]
                    if (is_causal and j > i + offset) or (lengths is not None and j >= lengths[b]):
                        row[j] = -np.inf
                    if local_window_size > 0 and j <= i + offset - local_window_size:
                        row[j] = -np.inf
                weights = np.zeros(keys) if np.all(row == -np.inf) else softmax(row)
                y[b, h, i] = weights @ v[b, h // group]
                shown[b, h, i] = [raw, capped, row, weights][qk_matmul_output_mode]
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(batch, queries, -1)
    return y.astype(dtype), k, v, shown.astype(dtype)


def attention_group(opset):
    g = Group(f"attention_{opset}", opset)
    f = g.floats
    names = ["q", "k", "v", "mask", "past_key", "past_value", "lengths"]

    def case(*inputs, outputs=(0,), dims=None, half=False, **attrs):
        given = [x.astype(np.float16) if half and x is not None and x.dtype == np.float32 else x for x in inputs]
        given += [None] * (7 - len(given))
        results = attention(*given, **attrs)
        given = dict(zip(names, given))
        while list(given.values())[-1] is None:
            given.popitem()
        g.case("Attention", given, [results[i] if i in outputs else None for i in range(max(outputs) + 1)], dims, **attrs)

    b4 = {"q": "b 3 s 8", "k": "b 3 t 8", "v": "b 3 t 8"}
    q, k, v = f(2, 3, 4, 8), f(2, 3, 6, 8), f(2, 3, 6, 8)
    flags = g.random.random((4, 6)) < 0.6
    empty = flags.copy()
    empty[1] = False
    case(q, k, v)
    case(q, k, v, dims=b4)
    case(q, k, f(2, 3, 6, 10), is_causal=1, dims={"q": "b 3 s 8", "k": "b 3 t 8", "v": "b 3 t 10"})
    case(f(2, 9, 4, 8), k, v, dims={"q": "b 9 s 8", "k": "b 3 t 8", "v": "b 3 t 8"})
    case(f(2, 9, 4, 8), f(2, 1, 6, 8), f(2, 1, 6, 8), is_causal=1, scale=0.25)
    case(q, k, v, f(4, 6), dims=dict(b4, mask="s t"))
    case(q, k, v, flags, dims=dict(b4, mask="s t"))
    case(q, k, v, empty, is_causal=1, dims=dict(b4, mask="s t"))
    case(q, k, v, empty, outputs=(0, 3), qk_matmul_output_mode=3)
    case(q, k, v, f(2, 1, 4, 6), softcap=2.0)
    case(q, k, v, f(1, 3, 4, 6), outputs=(0, 3), softcap=2.0, qk_matmul_output_mode=1, dims=dict(b4, mask="1 3 s t"))
    case(q, k, v, f(3, 4, 6), outputs=(0, 3), softcap=2.0, qk_matmul_output_mode=2)
    case(q, k, v, f(4, 6), outputs=(0, 3), dims=b4)
    infinite = np.where(flags, 0, -INF).astype(np.float32)
    case(q, k, v, infinite, softcap=0.5)
    case(q, k, v, f(4, 5))
    case(q, k, v, flags[:, :4], is_causal=1)
    pk, pv = f(2, 3, 5, 8), f(2, 3, 5, 8)
    past = dict(b4, past_key="b 3 p 8", past_value="b 3 p 8")
    case(q, k, v, None, pk, pv, outputs=(0, 1, 2), dims=past)
    case(q, k, v, None, pk, pv, outputs=(0, 1, 2), is_causal=1, dims=past)
    case(q, k, v, f(4, 11), pk, pv, outputs=(0, 1, 2, 3), qk_matmul_output_mode=2, is_causal=1, dims=dict(past, mask="s u"))
    case(q, k, v, g.random.random((2, 1, 4, 11)) < 0.7, pk, pv, outputs=(0, 1, 2), is_causal=1)
    case(q, k, v, None, pk[:, :, :0], pv[:, :, :0], outputs=(0, 1, 2), is_causal=1, dims=past)
    flat = {"q": "b s 24", "k": "b t 24", "v": "b t 24"}
    q3, k3, v3 = f(2, 4, 24), f(2, 6, 24), f(2, 6, 24)
    three = dict(q_num_heads=3, kv_num_heads=3)
    case(q3, k3, v3, dims=flat, **three)
    case(q3, k3, f(2, 6, 30), is_causal=1, dims=dict(flat, v="b t 30"), **three)
    case(f(2, 4, 72), k3, v3, flags, q_num_heads=9, kv_num_heads=3, dims=dict(flat, q="b s 72"))
    case(q3, k3, v3, f(2, 3, 4, 11), pk, pv, outputs=(0, 1, 2, 3), softcap=3.0, dims=dict(flat, past_key="b 3 p 8", past_value="b 3 p 8"), **three)
    case(q, k, v, half=True)
    case(q, k, v, empty, outputs=(0, 3), half=True, softmax_precision=1, qk_matmul_output_mode=3)
    if opset >= 24:
        del g.cases[4:-3]
        lengths = np.array([3, 4], np.int64)
        case(q, k, v, f(2, 3, 4, 4), None, None, lengths, dims=dict(b4, lengths="b"))
        case(f(2, 6, 1, 8), f(2, 2, 8, 8), f(2, 2, 8, 8), None, None, None, np.array([8, 5]), is_causal=1, dims={"q": "b 6 s 8", "k": "b 2 t 8", "v": "b 2 t 8", "lengths": "b"})
        case(q, k, v, None, None, None, lengths, is_causal=1)  # queries before the first key
        case(q, k, v, g.random.random((2, 1, 4, 6)) < 0.7, None, None, np.array([5, 6]), is_causal=1)
        case(q, k, v, None, None, None, lengths, half=True, is_causal=1)
    if opset >= 25:
        del g.cases[2:]
        case(q, k, v, local_window_size=3)
        case(q, k, v, local_window_size=-1, dims=b4)
        case(q, k, v, local_window_size=2, is_causal=1, dims=b4)
        case(q, k[:, :, :2], v[:, :, :2], None, pk, pv, outputs=(0, 1, 2), local_window_size=3, dims=past)
        case(q, f(2, 3, 8, 8), f(2, 3, 8, 8), f(2, 4, 8), None, None, np.array([6, 7]), local_window_size=3)
        case(q, k, v, f(2, 4, 6), None, None, lengths, outputs=(0, 3), local_window_size=1, qk_matmul_output_mode=3)
        case(f(2, 7, 24), f(2, 3, 24), f(2, 3, 24), local_window_size=2, dims=flat, **three)  # queries far behind the keys
        case(q, k, v, flags, local_window_size=3, half=True, softcap=2.0)
    return g


def rotary(x, cos, sin, ids=None, *, interleaved=0, rotary_embedding_dim=0, num_heads=0):
    flat = x.ndim == 3
    y = (heads_of(x, num_heads) if flat else x).astype(np.float64).copy()
    half = cos.shape[-1]
    for b in range(y.shape[0]):
        for s in range(y.shape[2]):
            c, n = (cos[ids[b, s]], sin[ids[b, s]]) if ids is not None else (cos[b, s], sin[b, s])
            for d in range(half):
                i, j = (2 * d, 2 * d + 1) if interleaved else (d, d + half)
                real, imaginary = y[b, :, s, i].copy(), y[b, :, s, j].copy()
                y[b, :, s, i], y[b, :, s, j] = c[d] * real - n[d] * imaginary, n[d] * real + c[d] * imaginary
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(x.shape)
    return y.astype(x.dtype)


def rotary_group():
    g = Group("rotary_embedding", 23)
    f, ids = g.floats, g.random.integers(0, 50, (2, 3))
    def case(x, cos, sin, ids=None, dims=None, **attrs):
        inputs = {"x": x, "cos": cos, "sin": sin}
        if ids is not None:
            inputs["ids"] = ids
        g.case("RotaryEmbedding", inputs, [rotary(x, cos, sin, ids, **attrs)], dims, **attrs)
    case(f(2, 4, 3, 8), f(50, 4), f(50, 4), ids, {"x": "b 4 s 8", "ids": "b s"})
    case(f(2, 4, 3, 8), f(50, 4), f(50, 4), ids, {"x": "b 4 s 8", "ids": "b s", "cos": "m 4", "sin": "m 4"}, interleaved=1)
    case(f(2, 3, 32), f(50, 4), f(50, 4), ids, {"x": "b s 32", "ids": "b s"}, num_heads=4)
    case(f(2, 4, 3, 8), f(2, 3, 4), f(2, 3, 4), None, {"x": "b 4 s 8", "cos": "b s 4", "sin": "b s 4"})
    case(f(2, 4, 3, 8), f(50, 2), f(50, 2), ids, None, rotary_embedding_dim=4)
    case(f(2, 3, 32), f(2, 3, 2), f(2, 3, 2), None, None, num_heads=4, rotary_embedding_dim=4, interleaved=1)
    case(f(2, 4, 3, 8).astype(np.float16), f(50, 4).astype(np.float16), f(50, 4).astype(np.float16), ids)
    return g


def scatter_group():
    g = Group("tensor_scatter", 24)
    def case(cache, update, at=None, dims=None, **attrs):
        axis, y = attrs.get("axis", -2) % cache.ndim, cache.copy()
        for b in range(cache.shape[0]):
            for s in range(update.shape[axis]):
                to = (0 if at is None else int(at[b])) + s
                to = to % cache.shape[axis] if attrs.get("mode") == "circular" else to
                index = [b] + [slice(None)] * (cache.ndim - 1)
                source = list(index)
                index[axis], source[axis] = to, s
                y[tuple(index)] = update[tuple(source)]
        inputs = {"cache": cache, "update": update}
        if at is not None:
            inputs["at"] = at
        g.case("TensorScatter", inputs, [y], dims, **attrs)
    f = g.floats
    case(f(2, 3, 8, 4), f(2, 3, 2, 4), np.array([1, 5]), {"cache": "b 3 l 4", "update": "b 3 s 4", "at": "b"})
    case(f(2, 3, 8, 4), f(2, 3, 3, 4), np.array([7, 2]), {"cache": "b 3 l 4", "update": "b 3 s 4", "at": "b"}, mode="circular")
    case(f(2, 8, 4), f(2, 3, 4), None, {"cache": "b l 4", "update": "b s 4"}, axis=1)
    case(f(2, 3, 8), f(2, 3, 2), np.array([0, 6]), None, axis=-1)
    case(f(2, 8, 4), f(2, 0, 4), np.array([1, 1]), {"cache": "b l 4", "update": "b s 4", "at": "b"}, axis=1)
    return g


def linear(q, k, v, state=None, decay=None, beta=None, *, q_num_heads, kv_num_heads, update_rule="gated_delta", scale=0.0, chunk_size=64):
    b, t, _ = q.shape
    dk, dv = q.shape[2] // q_num_heads, v.shape[2] // kv_num_heads
    s = np.zeros((b, kv_num_heads, dk, dv)) if state is None else state.astype(np.float64)
    y = np.zeros((b, t, q_num_heads, dv))
    qs, ks, vs = q.reshape(b, t, q_num_heads, dk), k.reshape(b, t, kv_num_heads, dk), v.reshape(b, t, kv_num_heads, dv)
    for n in range(b):
        for i in range(t):
            for h in range(kv_num_heads):
                S = s[n, h]
                if decay is not None:
                    S = S * np.exp(decay.reshape(b, t, kv_num_heads, -1)[n, i, h].astype(np.float64))[:, None]
                write = vs[n, i, h].astype(np.float64)
                if beta is not None:
                    rate = beta[n, i, h if beta.shape[2] > 1 else 0]
                    write = rate * (write - ks[n, i, h] @ S)
                s[n, h] = S + np.outer(ks[n, i, h], write)
            for h in range(q_num_heads):
                y[n, i, h] = (qs[n, i, h] @ s[n, h // (q_num_heads // kv_num_heads)]) * (scale or 1 / np.sqrt(dk))
    return y.reshape(b, t, -1).astype(q.dtype), s.astype(q.dtype if state is None else state.dtype)


def linear_group(domain=""):
    g = Group("linear_attention" if not domain else "contrib_linear_attention", 27 if not domain else 1, domain)
    f = g.floats
    dims = {"q": "b t 16", "k": "b t 8", "v": "b t 6", "state": "b 2 4 3", "decay": "b t 2", "beta": "b t 2"}
    def case(q, k, v, state=None, decay=None, beta=None, dims=None, **attrs):
        inputs = {"q": q, "k": k, "v": v, "state": state, "decay": decay, "beta": beta}
        y = linear(*inputs.values(), **attrs)
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        g.case("LinearAttention", inputs, list(y), dims and {i: d for i, d in dims.items() if inputs.get(i) is not None}, **attrs)
    two = dict(q_num_heads=4, kv_num_heads=2)
    q, k, v, s = f(2, 5, 16), f(2, 5, 8), f(2, 5, 6), f(2, 2, 4, 3)
    gate, beta = -np.abs(f(2, 5, 2)), np.abs(f(2, 5, 2)) / 4
    case(q, k / 2, v, s, gate, beta, dims=dims, **two)
    case(q, k, v, update_rule="linear", dims=dims, **two)
    case(q, k, v, s, -np.abs(f(2, 5, 8)), update_rule="gated", scale=0.5, dims=dict(dims, decay="b t 8"), **two)
    case(q, k / 2, v, None, None, beta, update_rule="delta", **two)
    case(q[:, :1], k[:, :1], v[:, :1], s, gate[:, :1], beta[:, :1], **two)
    if not domain:
        case(q, k / 2, v, s, gate, beta[:, :, :1], dims=dict(dims, beta="b t 1"), **two)
    return g


def conv_group(domain=""):
    g = Group("causal_conv_with_state" if not domain else "contrib_causal_conv_with_state", 27 if not domain else 1, domain)
    f = g.floats
    def case(x, w, bias=None, state=None, dims=None, activation="none"):
        k = w.shape[2]
        pad = np.zeros((*x.shape[:2], k - 1), np.float32) if state is None else state
        padded = np.concatenate([pad, x], 2)
        y = sum(padded[:, :, j:j + x.shape[2]] * w[None, :, 0, j, None] for j in range(k))
        y = y if bias is None else y + bias[None, :, None]
        y = y / (1 + np.exp(-y)) if activation != "none" else y
        inputs = {"x": x, "w": w, "bias": bias, "state": state}
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        g.case("CausalConvWithState", inputs, [y.astype(np.float32), padded[:, :, padded.shape[2] - (k - 1):]], dims, activation=activation)
    case(f(2, 3, 5), f(3, 1, 4), f(3), f(2, 3, 3), {"x": "b 3 t", "state": "b 3 3"}, "silu")
    case(f(2, 3, 5), f(3, 1, 4), None, None, {"x": "b 3 t"})
    case(f(2, 3, 1), f(3, 1, 4), None, f(2, 3, 3), None, "swish")
    case(f(2, 3, 6), f(3, 1, 1), f(3), None, {"x": "b 3 t"})
    case(f(2, 3, 5), f(3, 1, 4), f(3), f(2, 3, 3), {"x": "b c t", "w": "c 1 4", "bias": "c", "state": "b c 3"}, "silu")
    return g


def swiglu_group():
    g = Group("swiglu", 28)
    for a, b, alpha in ((g.floats(2, 3), g.floats(2, 3), 1.0), (g.floats(2, 3), g.floats(2, 3), 1.5), (g.floats(), g.floats(), 1.0), (g.floats(0, 3), g.floats(0, 3), 0.5)):
        y = a / (1 + np.exp(-alpha * a)) * b
        g.case("SwiGLU", {"a": a, "b": b}, [y.astype(np.float32)], {"a": "n 3", "b": "n 3"} if a.ndim else None, alpha=alpha)
    return g


def groups():
    ms = "com.microsoft"
    return [attention_group(23), attention_group(24), attention_group(25), rotary_group(), scatter_group(), linear_group(), linear_group(ms),
            conv_group(), conv_group(ms), swiglu_group()]
