"""com.microsoft: Attention, QAttention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding."""
import numpy as np
from attention import heads_of, rotary, softmax
from make_composed import Group

MS = "com.microsoft"
FILTER = -10000.0


def flat(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def attend(q, k, v, added=0.0, scale=None, causal=False):
    """added: to the scores [batch, heads, queries, keys]. The last query is at the last key where it is causal."""
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3])) + added
    s, t = scores.shape[2:]
    if causal:
        scores = np.where(np.arange(t)[None] <= np.arange(s)[:, None] + t - s, scores, -np.inf)
    return softmax(scores) @ v, scores


def mask_of(mask, batch, s, t, past):
    if mask.ndim == 1:
        at, ends = np.arange(t)[None], mask[:batch, None]
        seen = (at < ends) & (at >= mask[batch:, None]) if mask.size == 2 * batch else at < ends
        return np.where(seen, 0, FILTER)[:, None, None]
    wide = mask[:, None, None] if mask.ndim == 2 else mask[:, None] if mask.ndim == 3 else mask[:, :, past:past + s, :t]
    return np.where(wide > 0, 0, FILTER)


def trimmed(inputs):
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    return inputs


def self_attention():
    g = Group("contrib_attention", 1, MS)
    f, i32 = g.floats, lambda *x: np.array(x, np.int32)
    b, s, n, h = 2, 4, 2, 4

    def expected(rows, mask, past, bias, sizes, num_heads, unidirectional=0, scale=0.0, **_):
        q, k, v = (heads_of(x, num_heads) for x in np.split(rows, np.cumsum(sizes)[:2], 2))
        p = 0
        if past is not None:
            p = past.shape[3]
            k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
        added = 0.0 if bias is None else bias
        if mask is not None:
            added = added + mask_of(mask, b, s, k.shape[2], p)
        y, _ = attend(q, k, v, added, scale, unidirectional)
        return [flat(y).astype(np.float32), np.stack([k, v]).astype(np.float32) if k.shape == v.shape else None]

    def case(mask=None, past=None, bias=None, sizes=(8, 8, 8), with_bias=True, dims=None, present=False, **attrs):
        x, w, c = f(b, s, 6), f(6, sum(sizes)), f(sum(sizes)) if with_bias else None
        attrs = dict(num_heads=n, **attrs)
        if sizes != (8, 8, 8):
            attrs["qkv_hidden_sizes"] = list(sizes)
        rows = x @ w + (0 if c is None else c)
        y = expected(rows, mask, past, bias, sizes, **attrs)
        inputs = trimmed({"x": x, "w": w, "c": c, "mask": mask, "past": past, "bias": bias})
        g.case("Attention", inputs, y if present else y[:1], dims, ("w", "c"), **attrs)

    dx = {"x": "b s 6"}
    case(dims=dx)
    case(i32(4, 2), dims=dict(dx, mask="b"))
    case(i32(4, 3, 1, 0))
    case(i32([1, 1, 1, 0], [1, 0, 0, 0]), dims=dict(dx, mask="b s"))
    case(g.random.integers(0, 2, (b, s, s)).astype(np.int32), unidirectional=1, dims=dict(dx, mask="b s s"))
    case(unidirectional=1, scale=0.3, dims=dx, with_bias=False)
    case(bias=f(1, n, s, s), dims=dict(dx, bias="1 2 s s"))
    past = f(2, b, n, 3, h)
    dp = dict(dx, past="2 b 2 p 4")
    case(None, past, unidirectional=1, present=True, dims=dp)
    case(i32([0] + [1] * 6, [1] * 5 + [0] * 2), past, present=True, dims=dict(dp, mask="b t"))
    case(sizes=(8, 8, 12), dims=dx)
    case(present=True, dims=dx)

    for wt in (np.uint8, np.int8):
        low = np.iinfo(wt).min
        x, w = g.random.integers(0, 256, (b, s, 6)).astype(np.uint8), (g.random.integers(0, 256, (6, 24)) + low).astype(wt)
        xs, ws, c = np.float32(0.02), np.float32(0.01), f(24)
        xz, wz = np.uint8(120), wt(128 + low)
        rows = (x.astype(np.float64) - 120) @ (w.astype(np.float64) - float(wz)) * float(xs) * float(ws) + c
        inputs = {"x": x, "w": w, "c": c, "xs": np.array(xs), "ws": np.array(ws), "mask": i32(4, 2), "xz": np.array(xz), "wz": np.array(wz)}
        g.case("QAttention", inputs, expected(rows, i32(4, 2), None, None, (8, 8, 8), n)[:1], dict(dx, mask="b"), ("w", "c"), num_heads=n)
        inputs = {**inputs, "mask": None, "past": past}
        g.case("QAttention", inputs, expected(rows, None, past, None, (8, 8, 8), n, 1), dp, ("w", "c"), num_heads=n, unidirectional=1)
    return g


def multi_head():
    g = Group("contrib_multi_head_attention", 1, MS)
    f, i32 = g.floats, lambda *x: np.array(x, np.int32)
    b, s, t, n, h = 2, 4, 5, 2, 4
    names = ["q", "k", "v", "c", "mask", "bias", "pk", "pv"]

    def case(q, k=None, v=None, c=None, mask=None, bias=None, pk=None, pv=None, outputs=1, dims=None, **attrs):
        if q.ndim == 5:
            parts = [q[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)]
        else:
            parts = [heads_of(q, n)]
            if k.ndim == 5:
                parts += [k[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2)]
            else:
                parts += [k, v] if k.ndim == 4 else [heads_of(k, n), heads_of(v, n)]
        if c is not None:
            at = 0
            for i in range(3 if k is None or k.ndim != 4 else 1):
                size = parts[i].shape[1] * parts[i].shape[3]
                parts[i] = parts[i] + c[at:at + size].reshape(n, 1, -1)
                at += size
        query, key, value = parts
        p = 0
        if pk is not None:
            p = pk.shape[2]
            key, value = np.concatenate([pk, key], 2), np.concatenate([pv, value], 2)
        added = 0.0 if bias is None else bias
        if mask is not None:
            added = added + mask_of(mask, b, s, key.shape[2], p)
        y, scores = attend(query, key, value, added, attrs.get("scale"), attrs.get("unidirectional"))
        results = [flat(y), key, value, scores][:outputs]
        given = trimmed(dict(zip(names, [q, k, v, c, mask, bias, pk, pv])))
        g.case("MultiHeadAttention", given, [x.astype(np.float32) for x in results], dims, ("c",), num_heads=n, **attrs)

    q, k, v, c = f(b, s, 8), f(b, t, 8), f(b, t, 8), f(24)
    d = {"q": "b s 8", "k": "b t 8", "v": "b t 8"}
    case(q, k, v, dims=d)
    case(q, k, v, c, i32([1, 1, 1, 0, 0], [1] * 5), dims=dict(d, mask="b t"))
    case(q, k, v, c, i32(3, 5), dims=dict(d, mask="b"))
    case(q, k, f(b, t, 12), f(28), None, f(1, n, s, t), dims=dict(d, v="b t 12", bias="1 2 s t"), scale=0.2)
    case(q, k, v, None, g.random.integers(0, 2, (b, s, t)).astype(np.int32), dims=dict(d, mask="b s t"))
    case(q, k[:, :s], v[:, :s], None, None, None, f(b, n, 3, h), f(b, n, 3, h), outputs=3, unidirectional=1,
         dims={"q": "b s 8", "k": "b s 8", "v": "b s 8", "pk": "b 2 p 4", "pv": "b 2 p 4"})
    case(q, f(b, n, t, h), f(b, n, t, h), f(24), dims={"q": "b s 8", "k": "b 2 t 4", "v": "b 2 t 4"})
    case(q, f(b, t, n, 2, h), dims={"q": "b s 8", "k": "b t 2 2 4"})
    case(f(b, s, n, 3, h), dims={"q": "b s 2 3 4"})
    case(q, k[:, :s], v[:, :s], outputs=4, unidirectional=1)
    return g


def grouped():
    g = Group("contrib_group_query_attention", 1, MS)
    f = g.floats
    n, kv, h = 4, 2, 16
    names = ["q", "k", "v", "pk", "pv", "lengths", "total", "cos", "sin", "ids", "bias", "sink"]

    def case(q, k, v, pk=None, pv=None, lengths=None, total=None, cos=None, sin=None, ids=None, bias=None, sink=None, dims=None,
             do_rotary=0, rotary_interleaved=0, local_window_size=-1, scale=0.0, softcap=0.0, smooth_softmax=0, compare=True, **attrs):
        b, s = q.shape[:2]
        if k is None:
            query, key, value = (heads_of(x, m) for x, m in zip(np.split(q, [n * h, (n + kv) * h], 2), (n, kv, kv)))
        else:
            query, key, value = heads_of(q, n), heads_of(k, kv), heads_of(v, kv)
        first = np.array([0 if s == total else int(x) + 1 - s for x in lengths])
        at = first[:, None] + np.arange(s)[None] if ids is None else ids
        if do_rotary:
            query, key = (rotary(x, cos, sin, at, interleaved=rotary_interleaved) for x in (query, key))
        room = total if pk is None else max(total, pk.shape[2])
        keys, values = np.zeros((b, kv, room, h), np.float32), np.zeros((b, kv, room, h), np.float32)
        for i in range(b):
            if pk is not None:
                keys[i, :, :first[i]], values[i, :, :first[i]] = pk[i, :, :first[i]], pv[i, :, :first[i]]
            keys[i, :, first[i]:first[i] + s], values[i, :, first[i]:first[i] + s] = key[i], value[i]
        y = np.zeros((b, n, s, h))
        for i in range(b):
            for m in range(n):
                for j in range(s):
                    end = first[i] + j + 1
                    begin = max(0, end - local_window_size) if local_window_size > 0 else 0
                    row = keys[i, m // 2, begin:end].astype(np.float64) @ query[i, m, j] * (scale or 1 / np.sqrt(h))
                    row = np.tanh(row / softcap) * softcap if softcap else row
                    if bias is not None:
                        row = row + bias[i % bias.shape[0], m % bias.shape[1], j, begin:end]
                    if sink is not None or smooth_softmax:
                        row = np.append(row, sink[m] if sink is not None else 0)
                    weights = softmax(row)[:end - begin]
                    y[i, m, j] = weights @ values[i, m // 2, begin:end]
        options = dict(num_heads=n, kv_num_heads=kv, **attrs)
        for name, value, default in (("do_rotary", do_rotary, 0), ("rotary_interleaved", rotary_interleaved, 0), ("local_window_size", local_window_size, -1),
                                     ("scale", scale, 0.0), ("softcap", softcap, 0.0), ("smooth_softmax", smooth_softmax, 0)):
            if value != default:
                options[name] = value
        given = trimmed(dict(zip(names, [q, k, v, pk, pv, np.array(lengths, np.int32), np.array(total, np.int32), cos, sin, ids, bias, sink])))
        g.case("GroupQueryAttention", given, [flat(y).astype(np.float32), keys, values], dims, **options)

    cos, sin = np.cos(f(32, h // 2)), np.sin(f(32, h // 2))
    new = lambda b, s: (f(b, s, n * h), f(b, s, kv * h), f(b, s, kv * h))
    cache = lambda b, p: (f(b, kv, p, h), f(b, kv, p, h))
    d = {"q": "b s 64", "k": "b s 32", "v": "b s 32", "lengths": "b"}
    dp = dict(d, pk="b 2 p 16", pv="b 2 p 16")
    case(*new(2, 5), None, None, [4, 4], 5, dims=d)
    case(*new(2, 5), None, None, [4, 4], 5, cos, sin, do_rotary=1, dims=d)
    case(*new(2, 1), *cache(2, 6), [6, 6], 7, cos, sin, do_rotary=1, rotary_interleaved=1, dims=dp)
    case(*new(2, 1), *cache(2, 10), [6, 3], 7, cos, sin, do_rotary=1, dims=dp)
    case(f(1, 3, (n + 2 * kv) * h), None, None, *cache(1, 12), [7], 8, dims={"q": "b s 128", "lengths": "b", "pk": "b 2 p 16", "pv": "b 2 p 16"})
    case(*new(1, 6), None, None, [5], 6, local_window_size=3, scale=0.2, dims=d)
    case(*new(1, 4), None, None, [3], 4, softcap=2.0)
    case(*new(1, 4), None, None, [3], 4, smooth_softmax=1)
    case(*new(2, 4), None, None, [3, 3], 4, None, None, None, f(1, n, 4, 4), dims=dict(d, bias="1 4 s s"))
    case(*new(1, 4), None, None, [3], 4, None, None, None, None, f(n))
    return g


def rotary_group():
    g = Group("contrib_rotary_embedding", 1, MS)
    f, ids = g.floats, g.random.integers(0, 50, (2, 3))
    def case(x, ids, cos, sin, dims=None, **attrs):
        at = ids if ids.ndim == 2 else np.broadcast_to(ids + np.arange(x.shape[-2]), (x.shape[0], x.shape[-2]))
        heads = attrs.get("num_heads") or x.shape[2] // (2 * cos.shape[1])
        y = rotary(x, cos, sin, at, interleaved=attrs.get("interleaved", 0), num_heads=heads)
        g.case("RotaryEmbedding", {"x": x, "ids": ids, "cos": cos, "sin": sin}, [y], dims, **attrs)
    case(f(2, 3, 32), ids, f(50, 4), f(50, 4), {"x": "b s 32", "ids": "b s"})
    case(f(2, 3, 32), np.array([5]), f(50, 4), f(50, 4), {"x": "b s 32"}, interleaved=1)
    case(f(2, 4, 3, 8), ids, f(50, 4), f(50, 4), {"x": "b 4 s 8", "ids": "b s"})
    case(f(2, 3, 32), ids, f(50, 2), f(50, 2), None, num_heads=4, rotary_embedding_dim=4)
    return g


def groups():
    return [self_attention(), multi_head(), grouped(), rotary_group()]
