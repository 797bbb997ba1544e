# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that few implementations have: state, columns, crops, deformed windows, gates."""
import itertools

import numpy as np
import torch

from .case import family, f32, i32, i64, numbers
from .formulas import sigmoid

case = family("newest")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


# CausalConvWithState-27.
def causal_conv(x, w, b=None, past=None, activation="none"):
    k = w.shape[2]
    past = np.zeros((*x.shape[:2], k - 1)) if past is None else past
    long = np.concatenate([past, x.astype(np.float64)], 2)
    y = sum(long[:, :, j:j + x.shape[2]] * w[:, 0, j].astype(np.float64)[:, None] for j in range(k))
    y = y if b is None else y + b[:, None]
    y = y if activation == "none" else y * sigmoid(y)
    return [y.astype(x.dtype), long[:, :, long.shape[2] - (k - 1):].astype(x.dtype)]


X, W, B, PAST = numbers([2, 3, 5], 601), numbers([3, 1, 4], 602), numbers([3], 603), numbers([2, 3, 3], 604)
CAUSAL = "CausalConvWithState: depthwise, over the state and the input; the state is the last k - 1 positions of both"
case("causalconv_no_state", "CausalConvWithState", 27, [X, W], None, causal_conv(X, W), spec=CAUSAL, unasked=(ORT,))
case("causalconv_bias_state_silu", "CausalConvWithState", 27, [X, W, B, PAST], {"activation": "silu"}, causal_conv(X, W, B, PAST, "silu"), spec=CAUSAL,
     unasked=(ORT,))
case("causalconv_swish_no_bias", "CausalConvWithState", 27, [X, W, None, PAST], {"activation": "swish"}, causal_conv(X, W, None, PAST, "silu"), spec=CAUSAL,
     unasked=(ORT,))
SHORT = numbers([2, 3, 1], 605)
case("causalconv_input_shorter_than_state", "CausalConvWithState", 27, [SHORT, W, B, PAST], None, causal_conv(SHORT, W, B, PAST), spec=CAUSAL, unasked=(ORT,))
case("causalconv_kernel_of_one", "CausalConvWithState", 27, [X, W[:, :, :1].copy()], None, causal_conv(X, W[:, :, :1]), spec=CAUSAL, unasked=(ORT,))


# LinearAttention-27.
def linear_attention(q, k, v, past, decay, beta, q_heads, kv_heads, rule, scale=0.0):
    batch, steps = q.shape[:2]
    q, k, v = (a.astype(np.float64).reshape(batch, steps, h, -1) for a, h in ((q, q_heads), (k, kv_heads), (v, kv_heads)))
    state = np.zeros((batch, kv_heads, k.shape[3], v.shape[3])) if past is None else past.astype(np.float64)
    scale = scale or 1 / np.sqrt(q.shape[3])
    out = np.empty((batch, steps, q_heads, v.shape[3]))
    for t in range(steps):
        if "gated" in rule:
            g = decay[:, t].astype(np.float64).reshape(batch, kv_heads, -1)
            state = state * np.exp(g)[..., None]
        delta = v[:, t]
        if "delta" in rule:
            rate = np.broadcast_to(beta[:, t].astype(np.float64).reshape(batch, -1), (batch, kv_heads))
            delta = rate[..., None] * (v[:, t] - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + np.einsum("bhk,bhv->bhkv", k[:, t], delta)
        out[:, t] = scale * np.einsum("bhkv,bhk->bhv", np.repeat(state, q_heads // kv_heads, 1), q[:, t])
    return [out.reshape(batch, steps, -1).astype(np.float32), state.astype(np.float32)]


Q, K, V = numbers([2, 3, 8], 611), numbers([2, 3, 4], 612, scale=0.5), numbers([2, 3, 6], 613)
STATE, DECAY, KEY_DECAY = numbers([2, 2, 2, 3], 614), -np.abs(numbers([2, 3, 2], 615)), -np.abs(numbers([2, 3, 4], 616))
BETA, ONE_BETA = np.abs(numbers([2, 3, 2], 617, scale=0.25)), np.abs(numbers([2, 3, 1], 618, scale=0.25))
for name, rule, past, decay, beta, scale in [
        ("linear_state", "linear", STATE, None, None, 0.0), ("gated_by_head", "gated", None, DECAY, None, 0.0),
        ("gated_by_key_state", "gated", STATE, KEY_DECAY, None, 0.25), ("delta_one_rate", "delta", None, None, ONE_BETA, 0.0),
        ("delta_state_scale", "delta", STATE, None, BETA, 2.0), ("gated_delta_by_head", "gated_delta", STATE, DECAY, BETA, 0.0),
        ("gated_delta_by_key", "gated_delta", None, KEY_DECAY, ONE_BETA, 0.0)]:
    inputs = [Q, K, V, past, decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    case(f"linearattention_{name}", "LinearAttention", 27, inputs, {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule, "scale": scale},
         linear_attention(Q, K, V, past, decay, beta, 4, 2, rule, scale), spec="LinearAttention: the recurrence of update_rule, token by token", unasked=(ORT,))

# SwiGLU-28, CenterCropPad, Col2Im.
A, C = numbers([2, 3], 621), numbers([2, 3], 622)
for alpha in (1.0, 1.702):
    case(f"swiglu_alpha_{str(alpha).replace('.', '_')}", "SwiGLU", 28, [A, C], {"alpha": alpha},
         [(A.astype(np.float64) * sigmoid(alpha * A.astype(np.float64)) * C).astype(np.float32)], spec="SwiGLU: a * sigmoid(alpha * a) * b", unasked=(ORT,))
D = numbers([5, 4, 3], 623)
case("centercroppad_odd_crop_and_pad", "CenterCropPad", 18, [D, i64([2, 7, 3])], None, [np.pad(D[1:3], ((0, 0), (1, 2), (0, 0)))],
     spec="CenterCropPad: a crop begins at the half rounded down, an odd padding has one more at the end")
case("centercroppad_axes_negative", "CenterCropPad", 18, [D, i32([4, 2])], {"axes": [-1, 0]}, [np.pad(D[1:3], ((0, 0), (0, 0), (0, 1)))],
     spec="CenterCropPad: axes that are not named stay")
COLUMNS = numbers([1, 2 * 6, 8], 624)


def fold(columns, image, block, **values):
    return torch.nn.functional.fold(torch.from_numpy(columns), image, block, **values).numpy()


case("col2im_plain", "Col2Im", 18, [COLUMNS, i64([3, 6]), i64([2, 3])], also={"torch": [fold(COLUMNS, (3, 6), (2, 3))]}, unasked=(ORT,))
case("col2im_dilated_strided", "Col2Im", 18, [numbers([2, 6, 4], 625), i64([5, 6]), i64([2, 3])], {"dilations": [2, 1], "strides": [2, 3]},
     also={"torch": [fold(numbers([2, 6, 4], 625), (5, 6), (2, 3), dilation=(2, 1), stride=(2, 3))]}, unasked=(ORT,))
case("col2im_pads_overlap", "Col2Im", 18, [numbers([1, 4, 12], 626), i64([3, 4]), i64([2, 2])], {"pads": [1, 0, 1, 0]},
     also={"torch": [fold(numbers([1, 4, 12], 626), (3, 4), (2, 2), padding=(1, 0))]}, unasked=(ORT,))


# DeformConv, 2-D.
def deform_conv(x, w, offset, b=None, mask=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, offset_group=1):
    height, width = x.shape[2:]
    out_c, per, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    offset = offset.reshape(x.shape[0], offset_group, kh * kw, 2, oh, ow)
    mask = np.ones((x.shape[0], offset_group, kh * kw, oh, ow)) if mask is None else mask.reshape(x.shape[0], offset_group, kh * kw, oh, ow)

    def at(plane, y, z):
        y0, z0 = int(np.floor(y)), int(np.floor(z))
        total = 0.0
        for i, j in itertools.product((0, 1), (0, 1)):
            if 0 <= y0 + i < height and 0 <= z0 + j < width:
                total += plane[y0 + i, z0 + j] * (1 - abs(y - y0 - i)) * (1 - abs(z - z0 - j))
        return total

    y = np.zeros((x.shape[0], out_c, oh, ow)) if b is None else np.zeros((x.shape[0], out_c, oh, ow)) + b.reshape(1, -1, 1, 1)
    for n, o, i, j in np.ndindex(*y.shape):
        for c, p, q in np.ndindex(per, kh, kw):
            channel = o // (out_c // group) * per + c
            og, tap = channel // (x.shape[1] // offset_group), p * kw + q
            row = i * strides[0] - pads[0] + p * dilations[0] + offset[n, og, tap, 0, i, j]
            column = j * strides[1] - pads[1] + q * dilations[1] + offset[n, og, tap, 1, i, j]
            y[n, o, i, j] += w[o, c, p, q] * at(x[n, channel], row, column) * mask[n, og, tap, i, j]
    return [y.astype(np.float32)]


DX, DW = numbers([1, 2, 4, 5], 631), numbers([2, 2, 2, 2], 632)
DEFORM = "DeformConv: bilinear samples at the shifted places, 0 outside the padded input"
OFF = numbers([1, 8, 3, 4], 633, scale=0.5)
case("deformconv_offsets", "DeformConv", 19, [DX, DW, OFF], None, deform_conv(DX, DW, OFF), spec=DEFORM)
OFF = numbers([1, 16, 3, 3], 634, scale=0.5)
MASK = np.abs(numbers([1, 8, 3, 3], 635, scale=0.5))
VALUES = dict(strides=[2, 2], pads=[1, 1, 1, 1])
case("deformconv_two_offset_groups_mask_bias", "DeformConv", 22, [DX, DW, OFF, f32([0.5, -1]), MASK], VALUES | {"offset_group": 2},
     deform_conv(DX, DW, OFF, f32([0.5, -1]), MASK, offset_group=2, **VALUES), spec=DEFORM)
GW, OFF = numbers([4, 1, 2, 2], 636), numbers([1, 8, 2, 3], 637, scale=0.5)
case("deformconv_groups_dilated", "DeformConv", 22, [DX, GW, OFF], {"group": 2, "dilations": [2, 2]}, deform_conv(DX, GW, OFF, group=2, dilations=(2, 2)),
     spec=DEFORM, unasked=(EVALUATOR,))
