# SPDX-License-Identifier: Apache-2.0
"""Cases of attention, losses, optimizers, signals, text, windows, random numbers: options that the suites leave out."""
import numpy as np

from .case import INF, boolean, family, family_of_models, f32, i32, i64, numbers, tensor, text

case = family("others")
model = family_of_models("others")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


# Attention-23 and -24 from the text of the function body.
def attention(q, k, v, mask=None, past_k=None, past_v=None, is_causal=0, scale=None, softcap=0.0, q_heads=None, kv_heads=None, lengths=None,
              dtype=np.float32):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    flat = q.ndim == 3
    if flat:
        q, k, v = (a.reshape(a.shape[0], a.shape[1], h, -1).swapaxes(1, 2) for a, h in ((q, q_heads), (k, kv_heads), (v, kv_heads)))
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    present = [k, v]
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
    scores = q @ k.swapaxes(2, 3) * (1 / np.sqrt(q.shape[3]) if scale is None else scale)
    rows, columns = scores.shape[2:]
    bias = np.zeros((1, 1, rows, columns))
    if is_causal:
        bias = np.where(np.arange(columns) <= np.arange(rows)[:, None] + past, 0, -np.inf)[None, None]
    if mask is not None:
        m = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        m = m.reshape((1,) * (4 - m.ndim) + m.shape)
        bias = bias + np.pad(m, [(0, 0)] * 3 + [(0, columns - m.shape[3])], constant_values=-np.inf)
    if lengths is not None:
        bias = bias + np.where(np.arange(columns) < lengths.reshape(-1, 1, 1, 1), 0, -np.inf)
    scores = scores + bias
    if softcap:
        scores = np.where(np.isinf(scores), scores, softcap * np.tanh(scores / softcap))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = weights @ v
    if flat:
        y = y.swapaxes(1, 2).reshape(y.shape[0], rows, -1)
    return [a.astype(dtype) for a in (y, *present)]


Q, K, V = numbers([2, 4, 3, 2], 501), numbers([2, 2, 5, 2], 502), numbers([2, 2, 5, 3], 503)
PK, PV = numbers([2, 2, 2, 2], 504), numbers([2, 2, 2, 3], 505)
AT = "Attention: the text of the function body"
case("attention_grouped_heads", "Attention", 23, [Q, K, V], None, attention(Q, K, V)[:1], spec=AT, unasked=(ORT,))
case("attention_causal_scale", "Attention", 23, [Q, K, V], {"is_causal": 1, "scale": 0.3}, attention(Q, K, V, is_causal=1, scale=0.3)[:1], spec=AT,
     unasked=(ORT,))
MASK = numbers([3, 5], 506)
case("attention_float_mask", "Attention", 23, [Q, K, V, MASK], None, attention(Q, K, V, MASK)[:1], spec=AT, unasked=(ORT,))
BOOLEAN = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 1, 1, 0]], bool).reshape(1, 1, 3, 5)
case("attention_boolean_mask_rank_4", "Attention", 24, [Q, K, V, BOOLEAN], None, attention(Q, K, V, BOOLEAN)[:1], spec=AT, unasked=(ORT,))
case("attention_past_and_present", "Attention", 23, [Q, K, V, None, PK, PV], {"is_causal": 1}, attention(Q, K, V, past_k=PK, past_v=PV, is_causal=1),
     spec=AT, unasked=(ORT,))
Q3, K3, V3 = numbers([2, 3, 8], 507), numbers([2, 4, 4], 508), numbers([2, 4, 6], 509)
case("attention_rank_3", "Attention", 23, [Q3, K3, V3], {"q_num_heads": 4, "kv_num_heads": 2}, attention(Q3, K3, V3, q_heads=4, kv_heads=2)[:1], spec=AT,
     unasked=(ORT,))
case("attention_float16", "Attention", 23, [Q.astype(np.float16), K.astype(np.float16), V.astype(np.float16)], None,
     attention(Q, K, V, dtype=np.float16)[:1], spec=AT, unasked=(ORT,))
case("attention_24_valid_lengths", "Attention", 24, [Q, K, V, None, None, None, i64([3, 5])], None, attention(Q, K, V, lengths=i64([3, 5]))[:1], spec=AT,
     unasked=(ORT, EVALUATOR))

# Losses.
SCORES, LABELS = numbers([3, 4, 2], 511), i64([[0, 3], [2, 1], [3, 0]])


def log_softmax(x, axis=1):
    wide = x.astype(np.float64)
    wide = wide - wide.max(axis, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis, keepdims=True))


def nll(p, labels, weight=None, reduction="mean", ignore=None):
    picked = np.take_along_axis(p.astype(np.float64), np.where(labels == ignore, 0, labels)[:, None], 1)[:, 0]
    w = np.ones(p.shape[1]) if weight is None else weight.astype(np.float64)
    w = np.where(labels == ignore, 0, w[np.where(labels == ignore, 0, labels)])
    loss = -picked * w
    return (loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / w.sum()).astype(np.float32)


WEIGHT = f32([0.5, 2, 1, 0.25])
for reduction in ("none", "sum", "mean"):
    case(f"negativeloglikelihoodloss_weight_{reduction}", "NegativeLogLikelihoodLoss", 13, [SCORES, LABELS, WEIGHT], {"reduction": reduction, "ignore_index": 3},
         [np.asarray(nll(SCORES, LABELS, WEIGHT, reduction, 3))], spec="NegativeLogLikelihoodLoss: weighted, mean over the weights that count")
    case(f"softmaxcrossentropyloss_{reduction}", "SoftmaxCrossEntropyLoss", 13, [SCORES, LABELS, WEIGHT], {"reduction": reduction},
         [np.asarray(nll(log_softmax(SCORES), LABELS, WEIGHT, reduction)), log_softmax(SCORES).astype(np.float32)],
         spec="SoftmaxCrossEntropyLoss: the likelihood loss of log-softmax")
case("negativeloglikelihoodloss_all_ignored_none", "NegativeLogLikelihoodLoss", 22, [f32([[1, 2], [3, 4]]), i64([-1, 1])], {"ignore_index": -1, "reduction": "none"},
     [f32([0, -4])], spec="an ignored target contributes nothing")

# Optimizers of ai.onnx.preview.training, one step.
TRAINING = "ai.onnx.preview.training"
W, G, M = f32([1, -2, 3]), f32([0.5, 0.25, -1]), f32([0.1, -0.2, 0.3])
rate = 0.1 / (1 + 3 * 0.01)
g = G + 0.02 * W
case("adagrad_decay_and_norm", "Adagrad", 1, [f32(0.1), i64(3), W, G, np.abs(M)], {"decay_factor": 0.01, "norm_coefficient": 0.02, "epsilon": 0.001},
     [(W - rate * g / (np.sqrt(np.abs(M) + g * g) + 0.001)).astype(np.float32), (np.abs(M) + g * g).astype(np.float32)], domain=TRAINING,
     spec="Adagrad: r = R / (1 + T * decay_factor); H_new = H + G_regularized^2", unasked=(EVALUATOR, ORT))
fresh = W - 0.1 * G / (np.abs(G) + 0.5)
case("adagrad_first_step_large_epsilon", "Adagrad", 1, [f32(0.1), i64(0), W, G, f32([0, 0, 0])], {"epsilon": 0.5}, [fresh.astype(np.float32), G * G],
     domain=TRAINING, spec="Adagrad: epsilon is added to the root", unasked=(EVALUATOR, ORT))
for mode in ("standard", "nesterov"):
    v = 0.9 * M + 0.5 * g
    step = v if mode == "standard" else g + 0.9 * v
    case(f"momentum_{mode}_later_step", "Momentum", 1, [f32(0.1), i64(5), W, G, M], {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.02, "mode": mode},
         [(W - 0.1 * step).astype(np.float32), v.astype(np.float32)], domain=TRAINING, spec="Momentum: beta applies from the second step on",
         unasked=(EVALUATOR, ORT))
    v0 = 0.9 * M + g
    step = v0 if mode == "standard" else g + 0.9 * v0
    case(f"momentum_{mode}_first_step", "Momentum", 1, [f32(0.1), i64(0), W, G, M], {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.02, "mode": mode},
         [(W - 0.1 * step).astype(np.float32), v0.astype(np.float32)], domain=TRAINING, spec="Momentum: beta is 1 at T = 0", unasked=(EVALUATOR, ORT))
H = f32([0.2, 0.1, 0.4])
v, h = 0.8 * M + 0.2 * g, 0.9 * H + 0.1 * g * g
rate = 0.1 * np.sqrt(1 - 0.9 ** 4) / (1 - 0.8 ** 4)
case("adam_later_step", "Adam", 1, [f32(0.1), i64(4), W, G, M, H], {"alpha": 0.8, "beta": 0.9, "norm_coefficient": 0.02, "norm_coefficient_post": 0.05,
     "epsilon": 0.001}, [((1 - 0.05) * (W - rate * v / (np.sqrt(h) + 0.001))).astype(np.float32), v.astype(np.float32), h.astype(np.float32)],
     domain=TRAINING, spec="Adam: bias correction for T > 0, norm_coefficient_post last", unasked=(EVALUATOR, ORT))

# Signals.
SIGNAL = numbers([1, 6, 1], 521)
for name, opset, inputs, attributes, out in [
        ("17_real", 17, [SIGNAL], {"axis": 1}, np.fft.fft(SIGNAL[..., 0])),
        ("17_onesided", 17, [SIGNAL], {"axis": 1, "onesided": 1}, np.fft.rfft(SIGNAL[..., 0])),
        ("17_length_pads", 17, [SIGNAL, i64(8)], {"axis": 1}, np.fft.fft(SIGNAL[..., 0], 8)),
        ("20_length_cuts", 20, [SIGNAL, i64(4), i64(1)], {}, np.fft.fft(SIGNAL[..., 0], 4)),
        ("20_inverse_complex", 20, [numbers([1, 5, 2], 522), None, i64(-2)], {"inverse": 1},
         np.fft.ifft(numbers([1, 5, 2], 522) @ np.array([1, 1j])))]:
    case(f"dft_{name}", "DFT", opset, inputs, attributes, [np.stack([out.real, out.imag], -1).astype(np.float32)], spec="DFT: the transform along axis",
         unasked=(ORT,))
frames = np.stack([SIGNAL[0, k:k + 4, 0] * f32([0.5, 1, 1, 0.5]) for k in (0, 2)])
out = np.fft.rfft(frames)
case("stft_window_onesided", "STFT", 17, [SIGNAL, i64(2), f32([0.5, 1, 1, 0.5])], None, [np.stack([out.real, out.imag], -1)[None].astype(np.float32)],
     spec="STFT: frames of the window's length every frame_step, onesided by default")
out = np.fft.fft(np.stack([SIGNAL[0, k:k + 3, 0] for k in (0, 3)]))
case("stft_frame_length_two_sided", "STFT", 17, [SIGNAL, i64(3), None, i64(3)], {"onesided": 0}, [np.stack([out.real, out.imag], -1)[None].astype(np.float32)],
     spec="STFT: without a window the frame length is given", unasked=(EVALUATOR,))
for op, low in (("HannWindow", "hann"), ("HammingWindow", "hamming"), ("BlackmanWindow", "blackman")):
    case(f"{low}window_periodic", op, 17, [i64(7)])
    case(f"{low}window_symmetric", op, 17, [i32(6)], {"periodic": 0}, unasked=(EVALUATOR,),
         also={"numpy": [{"hann": np.hanning, "hamming": lambda n: 25 / 46 - 21 / 46 * np.cos(2 * np.pi * np.arange(n) / (n - 1)),
                          "blackman": np.blackman}[low](6).astype(np.float32)]})
case("melweightmatrix", "MelWeightMatrix", 17, [i64(5), i64(16), i64(8000), f32(100), f32(3500)])

# Text.
case("stringconcat_broadcast", "StringConcat", 20, [text([["a"], ["b"]]), text(["", "x", "ü"])], None,
     [text([["a", "ax", "aü"], ["b", "bx", "bü"]])], spec="StringConcat: broadcast as numpy does", unasked=(ORT,))
case("stringsplit_maxsplit", "StringSplit", 20, [text(["a,b,c", ",y", "x"])], {"delimiter": ",", "maxsplit": 1},
     [text([["a", "b,c"], ["", "y"], ["x", ""]]), i64([2, 2, 1])], spec="StringSplit: rows are filled with empty strings", unasked=(EVALUATOR, ORT))
case("stringsplit_whitespace", "StringSplit", 20, [text(["  a  b ", "c", "   "])], None, [text([["a", "b"], ["c", ""], ["", ""]]), i64([2, 1, 0])],
     spec="StringSplit: without a delimiter runs of whitespace part", unasked=(ORT,))
case("stringnormalizer_upper_stopwords", "StringNormalizer", 10, [text(["Monday", "tuesday", "Wednesday"])], {"case_change_action": "UPPER",
     "is_case_sensitive": 0, "stopwords": ["MONDAY"]}, [text(["TUESDAY", "WEDNESDAY"])], spec="StringNormalizer: stop words first, without regard to case", unasked=(EVALUATOR,))
case("stringnormalizer_all_removed", "StringNormalizer", 10, [text([["a", "b"]])], {"stopwords": ["a", "b"], "is_case_sensitive": 1}, [text([[""]])],
     spec="StringNormalizer: where nothing is left, one empty string", constant="nothing is left", unasked=(EVALUATOR, ORT))
case("regexfullmatch_full", "RegexFullMatch", 20, [text(["abc", "abcd", "a", ""])], {"pattern": "a[bc]*"})
POOL = dict(ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[2, 3, 5, 5, 4, 2, 3], min_gram_length=1, max_gram_length=2)
DATA = i64([[2, 3, 5, 4, 5], [5, 4, 2, 5, 4]])
for mode, weights in (("TF", None), ("IDF", [0.5, 2.0, 3.0, 4.0, 5.0]), ("TFIDF", [0.5, 2.0, 3.0, 4.0, 5.0])):
    for skip in (0, 1):
        case(f"tfidfvectorizer_{mode.lower()}_skip_{skip}", "TfIdfVectorizer", 9, [DATA], POOL | {"mode": mode, "max_skip_count": skip} |
             ({"weights": weights} if weights else {}))
case("tfidfvectorizer_strings", "TfIdfVectorizer", 9, [text(["a", "b", "a", "c"])], dict(ngram_counts=[0, 1], ngram_indexes=[1, 0], pool_strings=["a", "a", "b"],
     min_gram_length=1, max_gram_length=2, max_skip_count=0, mode="TF"))

# NonMaxSuppression, Dropout, Bernoulli of certain outcomes, random numbers by what can be said of them.
BOXES = f32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11]]])
CHANCES = f32([[[0.9, 0.75, 0.6, 0.95], [0.1, 0.8, 0.3, 0.2]]])
case("nonmaxsuppression_two_classes_threshold", "NonMaxSuppression", 11, [BOXES, CHANCES, i64([2]), f32([0.5]), f32([0.15])])
case("nonmaxsuppression_center_point", "NonMaxSuppression", 10, [f32([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 10.5, 1, 1]]]), f32([[[0.5, 0.9, 0.3]]]), i64([3]),
     f32([0.5])], {"center_point_box": 1})
case("nonmaxsuppression_flipped_corners", "NonMaxSuppression", 11, [f32([[[1, 1, 0, 0], [0, 0.1, 1, 1.1], [1, 11, 0, 10]]]), f32([[[0.9, 0.75, 0.5]]]), i64([3]), f32([0.5])])
case("nonmaxsuppression_box_in_box", "NonMaxSuppression", 11, [f32([[[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 1, 0.75]]]), f32([[[0.9, 0.75, 0.5]]]), i64([3]),
     f32([0.6])])
case("nonmaxsuppression_no_limit_given", "NonMaxSuppression", 11, [BOXES, CHANCES], constant="max_output_boxes_per_class is 0 by default", unasked=(EVALUATOR,),
     outputs=[i64([], [0, 3])], spec="NonMaxSuppression: max_output_boxes_per_class defaults to 0, which means no output")
case("dropout_inference_mask", "Dropout", 13, [numbers([2, 3], 531), f32(0.75)], count=2, unasked=(EVALUATOR,), outputs=[numbers([2, 3], 531), np.ones([2, 3], bool)],
     spec="Dropout: in inference the input and a mask of true")
case("dropout_training_ratio_0", "Dropout", 22, [numbers([2, 3], 532), f32(0), boolean(True)], None, [numbers([2, 3], 532), np.ones([2, 3], bool)],
     spec="Dropout: a ratio of 0 drops nothing", unasked=(EVALUATOR,))
for kind in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
    kept = tensor(kind, [[0.5, -3, 1.25], [16, 0.25, -7]])
    case(f"dropout_inference_{kind}", "Dropout", 22, [kept, f32(0.75)], None, [kept, np.ones([2, 3], bool)],
         spec="Dropout: in inference the input and a mask of true", unasked=(EVALUATOR, ORT))
case("dropout_7_attribute", "Dropout", 7, [numbers([2, 3], 533)], {"ratio": 0.9}, [numbers([2, 3], 533)], spec="Dropout-7: in test mode the input")
case("bernoulli_certain", "Bernoulli", 22, [f32([0, 1, 1, 0, 1])], {"dtype": 6, "seed": 1.0}, [i32([0, 1, 1, 0, 1])], spec="Bernoulli: the chance of a 1",
     unasked=())
case("multinomial_certain", "Multinomial", 7, [f32([[-INF, 0, -INF], [0, -INF, -INF]])], {"sample_size": 3, "dtype": 7, "seed": 2.0},
     [i64([[1, 1, 1], [0, 0, 0]])], spec="Multinomial: unnormalised log-probabilities, -inf is never drawn", unasked=(EVALUATOR, ORT))
DRAWN = """g () => (int64[R] shape, bool[6] y) {
  x = %s
  shape = Shape(x)
  w = Cast<to = 1>(x)
  low = ReduceMin<keepdims = 0>(w)
  high = ReduceMax<keepdims = 0>(w)
  mean = ReduceMean<keepdims = 0>(w)
  d = Sub(w, mean)
  q = Mul(d, d)
  v = ReduceMean<keepdims = 0>(q)
  deviation = Sqrt(v)
  c0 = Constant<value = float {%s}>() c1 = Constant<value = float {%s}>() c2 = Constant<value = float {%s}>()
  c3 = Constant<value = float {%s}>() c4 = Constant<value = float {%s}>()
  axes = Constant<value = int64[1] {0}>()
  b0 = GreaterOrEqual(low, c0) b1 = Less(high, c1) e = Sub(mean, c2) a = Abs(e) b2 = Less(a, c4) f = Sub(deviation, c3) h = Abs(f) b3 = Less(h, c4)
  b4 = Less(c1, low) b5 = Greater(c2, c2)
  u0 = Unsqueeze(b0, axes) u1 = Unsqueeze(b1, axes) u2 = Unsqueeze(b2, axes) u3 = Unsqueeze(b3, axes) u4 = Unsqueeze(b4, axes) u5 = Unsqueeze(b5, axes)
  y = Concat<axis = 0>(u0, u1, u2, u3, u4, u5)
}"""
for name, op, shape, bounds in [
        ("randomuniform_range_and_moments", "RandomUniform<shape = [4, 500], low = 2.0, high = 6.0, seed = 7.0>()", [4, 500], (2, 6, 4, 1.1547, 0.15)),
        ("randomuniform_default_seed_float64", "RandomUniform<shape = [2000], dtype = 11>()", [2000], (0, 1, 0.5, 0.2887, 0.05)),
        ("randomnormal_moments", "RandomNormal<shape = [2000], mean = -3.0, scale = 2.0, seed = 5.0>()", [2000], (-18, 12, -3, 2, 0.3)),
        ("randomnormal_float16", "RandomNormal<shape = [40, 50], dtype = 10>()", [40, 50], (-8, 8, 0, 1, 0.15))]:
    model(name, 18, DRAWN % (op, *bounds), [], [i64(shape), boolean([True, True, True, True, False, False])],
          spec="range, mean and deviation of the distribution: 2000 numbers lie within six of their own deviations", unasked=(EVALUATOR,))
for name, op, bounds in [("randomuniformlike_dtype_of_input", "RandomUniformLike<low = -1.0, high = 1.0, seed = 3.0>(t)", (-1, 1, 0, 0.57735, 0.1)),
                         ("randomnormallike_dtype_given", "RandomNormalLike<mean = 1.0, dtype = 11, seed = 3.0>(t)", (-9, 11, 1, 1, 0.15))]:
    graph = (DRAWN % (op, *bounds)).replace("g ()", "g (float[A, B] t)")
    model(name, 18, graph, [np.zeros([40, 50], np.float32)], [i64([40, 50]), boolean([True, True, True, True, False, False])],
          spec="range, mean and deviation of the distribution: 2000 numbers lie within six of their own deviations", unasked=(EVALUATOR,))
