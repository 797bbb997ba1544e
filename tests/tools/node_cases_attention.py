# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft's attention operators for compare_nodes.py."""
import numpy as np
from onnx import TensorProto

from node_cases import Case, peer_outputs, rng_for

F, I32 = TensorProto.FLOAT, TensorProto.INT32


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3).astype(np.float64)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attention():
    rng = rng_for("attention")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    batch, length, width, heads, size, past = 2, 4, 6, 2, 4, 3
    hidden = heads * size
    x, weights, bias = normal(batch, length, width), normal(width, 3 * hidden), normal(3 * hidden)
    options = {"num_heads": heads}
    yield Case("Attention", [x, weights, bias], options)
    plain = peer_outputs(Case("Attention", [x, weights, bias * 0], options))
    yield Case("Attention", [x, weights], options, expected=plain, note="onnxruntime crashes where the optional bias is left out")
    yield Case("Attention", [x, weights, bias], {**options, "unidirectional": 1})
    yield Case("Attention", [x, weights, bias], {**options, "scale": 0.3})
    masks = {"lengths": np.array([4, 2], np.int32), "ends and starts": np.array([4, 3, 0, 1], np.int32),
             "keys": np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32),
             "pairs": np.array([[[1, 1, 0, 0]] * 4, [[1, 0, 1, 0]] * 4], np.int32)}
    for name, mask in masks.items():
        for unidirectional in (0, 1):
            yield Case("Attention", [x, weights, bias, mask], {**options, "unidirectional": unidirectional}, note=f"mask: {name}")
    yield Case("Attention", [x, weights, bias, masks["keys"]], {**options, "mask_filter_value": -3.0}, note="a mild mask")
    cache = normal(2, batch, heads, past, size)
    for unidirectional in (0, 1):
        yield Case("Attention", [x, weights, bias, None, cache], {**options, "unidirectional": unidirectional}, 2, types=[F, F])
    mask = np.array([[1, 1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1]], np.int32)
    yield Case("Attention", [x, weights, bias, mask, cache], {**options, "unidirectional": 1}, 2, types=[F, F])
    for first in (1, 2):
        for second in (1, 2):
            yield Case("Attention", [x, weights, bias, None, None, normal(first, second, length, length)], options)
    yield Case("Attention", [x, weights, bias, masks["keys"], None, normal(2, 2, length, length)], options)
    yield Case("Attention", [x, normal(width, 8 + 8 + 12), normal(28)], {**options, "qkv_hidden_sizes": [8, 8, 12]})
    for kind in (np.uint8, np.int8):
        qx = rng.integers(0, 256, (batch, length, width)).astype(np.uint8)
        info = np.iinfo(kind)
        qw = rng.integers(info.min, info.max + 1, (width, 3 * hidden)).astype(kind)
        scale, zero = np.array(0.02, np.float32), np.array(120, np.uint8)
        for columns in ((), (3 * hidden,)):
            w_scale = np.full(columns, 0.01, np.float32) * rng.uniform(0.5, 1.5, columns).astype(np.float32)
            w_zero = rng.integers(-3, 3, columns).astype(kind) if kind == np.int8 else rng.integers(120, 130, columns).astype(kind)
            yield Case("QAttention", [qx, qw, bias, scale, np.asarray(w_scale), masks["lengths"], zero, np.asarray(w_zero)], options, types=[F],
                       tolerance=(1e-3, 1e-4))


def multi_head():
    rng = rng_for("multi head")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    batch, length, keys, heads, size, past = 2, 3, 5, 2, 4, 2
    hidden = heads * size
    options = {"num_heads": heads}
    q, k, v, bias = normal(batch, length, hidden), normal(batch, keys, hidden), normal(batch, keys, hidden), normal(3 * hidden)
    yield Case("MultiHeadAttention", [q, k, v], options)
    yield Case("MultiHeadAttention", [q, k, v, bias], options)
    yield Case("MultiHeadAttention", [q, k, v, bias], {**options, "scale": 0.4})
    yield Case("MultiHeadAttention", [q, k, normal(batch, keys, 12)], options)
    yield Case("MultiHeadAttention", [q, k, v, None, None, normal(1, heads, length, keys)], options)
    yield Case("MultiHeadAttention", [q, k, v, None, None, normal(batch, 1, length, keys)], options)
    yield Case("MultiHeadAttention", [q, k, v], options, 4, types=[F] * 4)
    yield Case("MultiHeadAttention", [q, normal(batch, heads, keys, size), normal(batch, heads, keys, size)], options)
    for mask in (np.array([5, 3], np.int32), np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], np.int32),
                 np.array([[[1, 1, 0, 1, 1]] * 3, [[1, 1, 1, 1, 0]] * 3], np.int32)):
        yield Case("MultiHeadAttention", [q, k, v, bias, mask], options)
        yield Case("MultiHeadAttention", [q, k, v, bias, mask], {**options, "mask_filter_value": -5.0})
    same = normal(batch, length, hidden), normal(batch, length, hidden), normal(batch, length, hidden)
    for unidirectional in (0, 1):
        more = {**options, "unidirectional": unidirectional}
        yield Case("MultiHeadAttention", [*same], more)
        caches = [normal(batch, heads, past, size), normal(batch, heads, past, size)]
        yield Case("MultiHeadAttention", [*same, bias, None, None, *caches], more, 3, types=[F] * 3)
        shown = 3 + (unidirectional == 0)  # what a causal query does not see is -inf in qk here, the least float in onnxruntime
        yield Case("MultiHeadAttention", [*same, None, np.ones((batch, past + length), np.int32), normal(1, 1, length, past + length), *caches],
                   more, shown, types=[F] * shown)
    one = [normal(batch, 1, hidden) for _ in range(3)]
    caches = [normal(batch, heads, past, size), normal(batch, heads, past, size)]
    same = peer_outputs(Case("MultiHeadAttention", [*one, None, None, None, *caches], options, 3, types=[F] * 3))
    yield Case("DecoderMaskedMultiHeadAttention", [*one, None, None, *caches], options, 3, types=[F] * 3, expected=same,
               note="onnxruntime wants shared buffers")
    packed = normal(batch, length, heads, 3, size)
    parts = [packed[:, :, :, part].transpose(0, 2, 1, 3).astype(np.float64) for part in range(3)]
    scores = parts[0] @ parts[1].swapaxes(2, 3) / np.sqrt(size)
    yield Case("MultiHeadAttention", [packed], options, expected=[joined(softmax(scores) @ parts[2])], note="packed QKV has no kernel on the CPU")
    both = normal(batch, keys, heads, 2, size)
    k4, v4 = (both[:, :, :, part].transpose(0, 2, 1, 3).astype(np.float64) for part in range(2))
    scores = heads_of(q, heads) @ k4.swapaxes(2, 3) / np.sqrt(size)
    yield Case("MultiHeadAttention", [q, both], options, expected=[joined(softmax(scores) @ v4)], note="packed KV has no kernel on the CPU")


def rotary():
    rng = rng_for("rotary")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    batch, length, heads, size = 2, 3, 4, 8
    angles = np.outer(np.arange(12), 1 / 100 ** (np.arange(4) / 4)).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    for interleaved in (0, 1):
        for ids in (np.array([2], np.int64), np.array([[0, 1, 2], [7, 3, 11]], np.int64)):
            options = {"interleaved": interleaved}
            yield Case("RotaryEmbedding", [normal(batch, length, heads * size), ids, cos, sin], options)
            yield Case("RotaryEmbedding", [normal(batch, heads, length, size), ids, cos, sin], options)
            part = {**options, "num_heads": heads, "rotary_embedding_dim": 4}
            yield Case("RotaryEmbedding", [normal(batch, length, heads * size), ids, cos[:, :2], sin[:, :2]], part)


def group_query():
    rng = rng_for("group query")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    heads, shared, size, room = 4, 2, 16, 12
    angles = np.outer(np.arange(room), 1 / 100 ** (np.arange(8) / 8)).astype(np.float32)
    caches = [np.cos(angles), np.sin(angles)]
    counts = {"num_heads": heads, "kv_num_heads": shared}

    def case(length, lengths, past=None, options=None, packed=False, rope=False, extra=(), **more):
        """`lengths`: all tokens of each sample with the new ones; `past`: rows of the cache."""
        batch = len(lengths)
        inputs = ([normal(batch, length, (heads + 2 * shared) * size), None, None] if packed else
                  [normal(batch, length, heads * size), normal(batch, length, shared * size), normal(batch, length, shared * size)])
        inputs += [None, None] if past is None else [normal(batch, shared, past, size), normal(batch, shared, past, size)]
        inputs += [np.array([n - 1 for n in lengths], np.int32), np.array(max(lengths), np.int32)]
        inputs += (caches if rope else [None, None]) + list(extra)
        while inputs[-1] is None:
            inputs.pop()
        attributes = {**counts, "do_rotary": int(rope), **(options or {})}
        outputs = more.pop("outputs", 3)
        return Case("GroupQueryAttention", inputs, attributes, outputs, types=[F] * outputs, **more)

    for packed in (False, True):
        for rope in (False, True):
            yield case(5, [5, 5], packed=packed, rope=rope)
            yield case(1, [7, 7], 6, packed=packed, rope=rope)
            yield case(1, [7, 7], room, packed=packed, rope=rope, note="a cache with room")
            yield case(1, [7, 4], room, packed=packed, rope=rope, note="samples of different lengths")
            yield case(3, [8], 8, packed=packed, rope=rope, note="several tokens after a past")
        yield case(5, [5, 5], packed=packed, rope=True, options={"rotary_interleaved": 1})
    rows = [np.arange(5) < n for n in (5, 3)]
    yield case(5, [5, 3], rope=True, mask={0: np.array(rows)}, note="a padded prompt: what the padding answers is undefined", outputs=1)
    for options in ({"local_window_size": 3}, {"softcap": 1.5}, {"smooth_softmax": 1}, {"scale": 0.2}, {"local_window_size": 2, "softcap": 2.0},
                    {"causal": 0}):
        yield case(6, [6, 6], options=options)
        yield case(1, [9, 5], 10, options=options)
    yield case(5, [5, 5], extra=[None, normal(1, heads, 5, 5)])
    yield case(5, [5, 5], extra=[None, normal(2, 1, 5, 5)])
    yield case(1, [6, 4], 8, extra=[None, normal(2, heads, 1, 6)])
    yield case(5, [5, 5], extra=[None, None, normal(heads)])
    yield case(1, [7, 7], 6, rope=True, extra=[np.array([[8], [9]], np.int64)])
    yield case(4, [4, 4], rope=True, extra=[np.array([[2, 3, 4, 5], [2, 3, 4, 5]], np.int64)])
    for kind, code, bits, span in ((np.int8, TensorProto.INT8, 8, 0.05), (np.uint8, TensorProto.UINT8, 4, 0.4)):
        for mode, shape in (("PER_TENSOR", (1,)), ("PER_CHANNEL", (1, shared, 1, size))):
            row = size // (8 // bits)
            q, k, v = normal(2, 1, heads * size), normal(2, 1, shared * size), normal(2, 1, shared * size)
            past = [rng.integers(-100 if bits == 8 else 0, 100 if bits == 8 else 256, (2, shared, 6, row)).astype(kind) for _ in range(2)]
            scales = [(span * rng.uniform(0.5, 1.5, shape)).astype(np.float32) for _ in range(2)]
            yield Case("GroupQueryAttention", [q, k, v, *past, np.array([6, 6], np.int32), np.array(7, np.int32), *[None] * 5, *scales],
                       {**counts, "k_quant_type": mode, "v_quant_type": mode, "kv_cache_bit_width": bits}, 3, types=[F, code, code],
                       ulps=1 if bits == 8 else 0, note="a quantized cache")
    for shown in (1, 2):
        yield case(5, [5, 5], options={"qk_output": shown}, outputs=4)


def packed():
    rng = rng_for("packed")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    counts, longest, heads, size, width = [1, 3, 4], 4, 2, 3, 5
    hidden = heads * size
    padded = normal(3, longest, width)
    kept = [b * longest + s for b in range(3) for s in range(counts[b])]
    rest = [b * longest + s for b in range(3) for s in range(counts[b], longest)]
    offsets = np.array(kept + rest, np.int32).reshape(3, longest)
    starts = np.array([0, 1, 4, 8], np.int32)
    tokens = padded.reshape(-1, width)[kept]
    why = "no kernel on the CPU"
    yield Case("RemovePadding", [padded, np.array(counts, np.int32)], None, 4, types=[F, I32, I32, I32],
               expected=[tokens, offsets, starts, np.array([4])], note=why)
    restored = np.zeros_like(padded).reshape(-1, width)
    restored[kept] = tokens
    yield Case("RestorePadding", [tokens, offsets], expected=[restored.reshape(padded.shape)], note=why)

    def attend(q, k, v, bias):
        results = []
        for b in range(3):
            part = slice(starts[b], starts[b + 1])
            h = lambda t: heads_of(t[None, part], heads)
            scores = h(q) @ h(k).swapaxes(2, 3) / np.sqrt(size) + bias[b % len(bias), :, : counts[b], : counts[b]]
            results.append(joined(softmax(scores) @ h(v))[0])
        return np.concatenate(results)

    weights, bias, scores = normal(width, 3 * hidden), normal(3 * hidden), normal(1, heads, longest, longest)
    q, k, v = np.split(tokens.astype(np.float64) @ weights + bias, 3, axis=1)
    options = {"num_heads": heads}
    yield Case("PackedAttention", [tokens, weights, bias, offsets, starts, scores], options, expected=[attend(q, k, v, scores)], note=why)
    q, k, v = normal(8, hidden), normal(8, hidden), normal(8, hidden)
    qb, kb, vb = (a + b for a, b in zip((q, k, v), np.split(bias, 3)))
    yield Case("PackedMultiHeadAttention", [q, k, v, bias, offsets, starts, scores], options, expected=[attend(qb, kb, vb, scores)], note=why)
    together = np.stack([t.reshape(8, heads, size) for t in (q, k, v)], axis=2)
    yield Case("PackedMultiHeadAttention", [together, None, None, None, offsets, starts], options,
               expected=[attend(q, k, v, np.zeros((1, heads, longest, longest)))], note=why)


def states():
    rng = rng_for("states")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    for activation in ("none", "silu"):
        for more in ([], [normal(6)], [normal(6), normal(2, 6, 2)]):
            yield Case("CausalConvWithState", [normal(2, 6, 5), normal(6, 1, 3), *more], {"activation": activation}, 2, types=[F, F])
    for rule in ("linear", "gated", "delta", "gated_delta"):
        q, k, v = normal(2, 3, 8), normal(2, 3, 8) * 0.5, normal(2, 3, 10)
        decay, beta = -np.abs(normal(2, 3, 2)), 1 / (1 + np.exp(-normal(2, 3, 2)))
        inputs = [q, k, v, normal(2, 2, 4, 5), decay if "gated" in rule else None, beta if "delta" in rule else None]
        while inputs[-1] is None:
            inputs.pop()
        yield Case("LinearAttention", inputs, {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": rule}, 2, types=[F, F])


def cases():
    for family in (attention, multi_head, rotary, group_query, packed, states):
        yield from family()
