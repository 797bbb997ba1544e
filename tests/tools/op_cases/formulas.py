# SPDX-License-Identifier: Apache-2.0
"""A few operators written from the specification's equations, in double, for cases where the peers are wrong or alone."""
import math

import numpy as np

# Exponent bits, mantissa bits, bias, and what the specification's tables say of infinity and NaN ("ieee": both, at the highest
# exponent; "fn": no infinity, NaN at all ones; "fnuz": no infinity, no -0, NaN at the code of -0; "none": neither).
FORMATS = {
    "float16": (5, 10, 15, "ieee"), "bfloat16": (8, 7, 127, "ieee"), "float8e5m2": (5, 2, 15, "ieee"),
    "float8e4m3fn": (4, 3, 7, "fn"), "float8e4m3fnuz": (4, 3, 8, "fnuz"), "float8e5m2fnuz": (5, 2, 16, "fnuz"),
    "float4e2m1": (2, 1, 1, "none"),
}


def finite_values(dtype):
    """The non-negative finite values, in order of their codes."""
    exponent_bits, mantissa_bits, bias, special = FORMATS[dtype]
    exponents = 2 ** exponent_bits - (special == "ieee")
    values = [math.ldexp(m if e == 0 else m + 2 ** mantissa_bits, max(e, 1) - bias - mantissa_bits)
              for e in range(exponents) for m in range(2 ** mantissa_bits)]
    return values[:-1] if special == "fn" else values


def narrow(values, dtype, saturate=True):
    """Cast to a narrow float: to nearest, ties to an even code; beyond the largest value by the tables of Cast."""
    table = np.array(finite_values(dtype))
    special = FORMATS[dtype][3]
    step = table[-1] - table[-2]
    beyond = table[-1] if saturate or special == "none" else math.inf if special == "ieee" else math.nan
    if dtype in ("float16", "bfloat16"):
        beyond = math.inf
    result = []
    for x in np.asarray(values, np.float64).ravel():
        if math.isnan(x):
            result.append(x)
            continue
        size = abs(x)
        if size >= table[-1] + step / 2 and (size > table[-1] + step / 2 or len(table) % 2 == 0):
            nearest = beyond
        else:
            k = int(np.searchsorted(table, size))
            around = [j for j in (k - 1, k) if 0 <= j < len(table)]
            nearest = table[min(around, key=lambda j: (abs(table[j] - size), j % 2))]
        if special == "fnuz" and nearest == 0:
            x = 0.0
        result.append(math.copysign(nearest, x))
    return np.array(result).reshape(np.shape(values))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# RNN, GRU, LSTM: "Activation functions".
ACTIVATIONS = {
    "Relu": lambda x, a, b: np.maximum(0, x), "Tanh": lambda x, a, b: np.tanh(x), "Sigmoid": lambda x, a, b: sigmoid(x),
    "Affine": lambda x, a, b: a * x + b, "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0), "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)), "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log(1 + np.exp(x)),
}


def _cell(kind, x, h, c, w, r, wb, rb, p, functions, linear_before_reset, input_forget):
    f, g, hh = functions
    if kind == "RNN":
        return f(x @ w[0].T + h @ r[0].T + wb[0] + rb[0]), c
    if kind == "GRU":
        z = f(x @ w[0].T + h @ r[0].T + wb[0] + rb[0])
        reset = f(x @ w[1].T + h @ r[1].T + wb[1] + rb[1])
        if linear_before_reset:
            n = g(x @ w[2].T + reset * (h @ r[2].T + rb[2]) + wb[2])
        else:
            n = g(x @ w[2].T + (reset * h) @ r[2].T + rb[2] + wb[2])
        return (1 - z) * n + z * h, c
    i = f(x @ w[0].T + h @ r[0].T + p[0] * c + wb[0] + rb[0])
    forget = 1 - i if input_forget else f(x @ w[2].T + h @ r[2].T + p[2] * c + wb[2] + rb[2])
    new = forget * c + i * g(x @ w[3].T + h @ r[3].T + wb[3] + rb[3])
    o = f(x @ w[1].T + h @ r[1].T + p[1] * new + wb[1] + rb[1])
    return o * hh(new), new


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def recurrent(kind, X, W, R, B=None, lengths=None, h0=None, c0=None, P=None, direction="forward", activations=None, alpha=(),
              beta=(), clip=None, layout=0, linear_before_reset=0, input_forget=0):
    """[Y, Y_h] or [Y, Y_h, Y_c]."""
    X = np.asarray(X, np.float64)
    if layout:
        X, h0, c0 = X.swapaxes(0, 1), *(s if s is None else s.swapaxes(0, 1) for s in (h0, c0))
    steps, batch, _ = X.shape
    gates, directions, hidden = GATES[kind], W.shape[0], R.shape[2]
    names = activations or DEFAULTS[kind] * directions
    alphas, betas = iter(alpha), iter(beta)
    takes = {"Affine": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "ScaledTanh": 2, "HardSigmoid": 2, "Elu": 1}
    arguments = [(next(alphas) if takes.get(n, 0) > 0 else 0, next(betas) if takes.get(n, 0) > 1 else 0) for n in names]
    Y = np.zeros((steps, directions, batch, hidden))
    states, cells = np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    for d in range(directions):
        w, r = W[d].astype(np.float64).reshape(gates, hidden, -1), R[d].astype(np.float64).reshape(gates, hidden, -1)
        wb, rb = np.zeros((2, gates, hidden)) if B is None else B[d].astype(np.float64).reshape(2, gates, hidden)
        p = np.zeros((3, hidden)) if P is None else P[d].astype(np.float64).reshape(3, hidden)
        per = len(DEFAULTS[kind])

        def bound(k):
            a, b = arguments[d * per + k]
            low_high = (lambda x: x) if clip is None else (lambda x: np.clip(x, -clip, clip))
            return lambda x: ACTIVATIONS[names[d * per + k]](low_high(x), a, b)

        functions = [bound(min(k, per - 1)) for k in range(3)]
        for n in range(batch):
            h = np.zeros(hidden) if h0 is None else h0[d, n].astype(np.float64)
            c = np.zeros(hidden) if c0 is None else c0[d, n].astype(np.float64)
            times = list(range(steps if lengths is None else lengths[n]))
            if direction == "reverse" or d == 1:
                times.reverse()
            for t in times:
                h, c = _cell(kind, X[t, n], h, c, w, r, wb, rb, p, functions, linear_before_reset, input_forget)
                Y[t, d, n] = h
            states[d, n], cells[d, n] = h, c
    if layout:
        Y, states, cells = Y.transpose(2, 0, 1, 3), states.swapaxes(0, 1), cells.swapaxes(0, 1)
    return [r.astype(np.float32) for r in ([Y, states, cells] if kind == "LSTM" else [Y, states])]


def bucket(distance, buckets, farthest, both):
    """The bucket of a relative position: Raffel et al., section 2.1, for a key `distance` after the query."""
    first = 0
    if both:
        buckets //= 2
        first, distance = (buckets if distance > 0 else 0), abs(distance)
    else:
        distance = max(0, -distance)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    return first + min(buckets - 1, exact + int(math.log(distance / exact) / math.log(farthest / exact) * (buckets - exact)))
