"""Layers in NumPy, from the formulas of the specification: convolutions and recurrent layers."""
import itertools

import numpy as np


def conv(x, w, bias=None, strides=None, pads=None, dilations=None, group=1):
    spatial = x.ndim - 2
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(pads[d], pads[spatial + d]) for d in range(spatial)])
    size = [(x.shape[d + 2] - (w.shape[d + 2] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(spatial)]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    for m in range(w.shape[0]):
        first = m // (w.shape[0] // group) * w.shape[1]
        for at in itertools.product(*map(range, size)):
            part = x[(slice(None), slice(first, first + w.shape[1])) + tuple(
                slice(at[d] * strides[d], at[d] * strides[d] + (w.shape[d + 2] - 1) * dilations[d] + 1, dilations[d])
                for d in range(spatial))]
            y[(slice(None), m) + at] = (part * w[m].astype(np.float64)).sum(tuple(range(1, x.ndim)))
    return y if bias is None else y + bias.reshape(-1, *[1] * spatial)


def conv_transpose(x, w, bias=None, strides=None, pads=None, dilations=None, group=1, output_padding=None):
    spatial = x.ndim - 2
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    more = output_padding or [0] * spatial
    size = [(x.shape[d + 2] - 1) * strides[d] + (w.shape[d + 2] - 1) * dilations[d] + 1 + more[d] for d in range(spatial)]
    y = np.zeros((x.shape[0], w.shape[1] * group, *size))
    for c in range(x.shape[1]):
        first = c // (x.shape[1] // group) * w.shape[1]
        for place in itertools.product(*[range(k) for k in w.shape[2:]]):
            to = tuple(slice(place[d] * dilations[d], place[d] * dilations[d] + (x.shape[d + 2] - 1) * strides[d] + 1, strides[d])
                       for d in range(spatial))
            weights = w[(c, slice(None)) + place].astype(np.float64).reshape(1, -1, *[1] * spatial)
            y[(slice(None), slice(first, first + w.shape[1])) + to] += x[:, c:c + 1].astype(np.float64) * weights
    y = y[(slice(None), slice(None)) + tuple(slice(pads[d], size[d] - pads[spatial + d]) for d in range(spatial))]
    return y if bias is None else y + bias.reshape(-1, *[1] * spatial)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(kind, x, w, r, b=None, h=None, c=None, p=None, direction="forward", linear_before_reset=0):
    """The rows of all steps, the last hidden state, and the last cell of an LSTM."""
    gates, hidden = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind], r.shape[2]
    rows, states, cells = [], [], []
    for d in range(w.shape[0]):
        backward = direction == "reverse" or d == 1
        state = np.zeros((x.shape[1], hidden)) if h is None else h[d].astype(np.float64)
        cell = np.zeros((x.shape[1], hidden)) if c is None else c[d].astype(np.float64)
        wb, rb = (np.zeros(gates * hidden),) * 2 if b is None else np.split(b[d].astype(np.float64), 2)
        found = [None] * len(x)
        for t in reversed(range(len(x))) if backward else range(len(x)):
            a = np.split(x[t].astype(np.float64) @ w[d].astype(np.float64).T + wb, gates, 1)
            weights, biases = np.split(r[d].astype(np.float64), gates), np.split(rb, gates)
            s = [state @ weights[g].T + biases[g] for g in range(gates)]
            if kind == "RNN":
                state = np.tanh(a[0] + s[0])
            elif kind == "GRU":
                z, reset = sigmoid(a[0] + s[0]), sigmoid(a[1] + s[1])
                inner = reset * s[2] if linear_before_reset else (reset * state) @ weights[2].T + biases[2]
                state = (1 - z) * np.tanh(a[2] + inner) + z * state
            else:
                pi, po, pf = (0, 0, 0) if p is None else np.split(p[d].astype(np.float64), 3)
                cell_before = cell
                cell = sigmoid(a[2] + s[2] + pf * cell) * cell + sigmoid(a[0] + s[0] + pi * cell_before) * np.tanh(a[3] + s[3])
                state = sigmoid(a[1] + s[1] + po * cell) * np.tanh(cell)
            found[t] = state
        rows.append(found)
        states.append(state)
        cells.append(cell)
    results = [np.array(rows).transpose(1, 0, 2, 3), np.array(states)]
    return results + [np.array(cells)] if kind == "LSTM" else results
