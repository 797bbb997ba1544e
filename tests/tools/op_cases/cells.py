# SPDX-License-Identifier: Apache-2.0
"""Cases of RNN, GRU and LSTM: lengths, clip, activations, layout, directions. ONNX's ReferenceEvaluator knows little of these and is
not asked; onnxruntime is, next to the equations in formulas.py."""
from .case import family, i32, numbers
from .formulas import GATES, recurrent

case = family("cells")
EVALUATOR = "ReferenceEvaluator"


def cell(name, kind, opset=14, direction="forward", lengths=None, state=False, bias=True, peepholes=False, attributes=None, omit="", wrong=None,
         sizes=(4, 3, 2, 3), **known):
    steps, batch, size, hidden = sizes
    directions = 2 if direction == "bidirectional" else 1
    gates, layout = GATES[kind], known.get("layout", 0)
    X = numbers([batch, steps, size] if layout else [steps, batch, size], 101)
    W, R = numbers([directions, gates * hidden, size], 102, scale=0.5), numbers([directions, gates * hidden, hidden], 103, scale=0.5)
    B = numbers([directions, 2 * gates * hidden], 104, scale=0.5) if bias else None
    at_start = [batch, directions, hidden] if layout else [directions, batch, hidden]
    h0 = numbers(at_start, 105, scale=0.5) if state else None
    c0 = numbers(at_start, 106, scale=0.5) if state and kind == "LSTM" else None
    P = numbers([directions, 3 * hidden], 107, scale=0.5) if peepholes else None
    inputs = [X, W, R, B, None if lengths is None else i32(lengths), h0] + ([c0, P] if kind == "LSTM" else [])
    while inputs[-1] is None:
        inputs.pop()
    known |= {"direction": direction}
    outputs = recurrent(kind, X, W, R, B, lengths, h0, c0, P, **known)
    names = {"alpha": "activation_alpha", "beta": "activation_beta"}
    given = {"hidden_size": hidden} | {names.get(k, k): v for k, v in known.items()} | (attributes or {})
    count = omit or "1" * len(outputs)
    case(name, kind, opset, inputs, given, [o for o, c in zip(outputs, count) if c == "1"], count=count,
         spec=f"{kind}: the equations", unasked=(EVALUATOR,), wrong=wrong or {})


for kind in ("RNN", "GRU", "LSTM"):
    low = kind.lower()
    one = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Softsign"], "LSTM": ["HardSigmoid", "Softsign", "Relu"]}[kind]
    other = {"RNN": ["Affine"], "GRU": ["Sigmoid", "ScaledTanh"], "LSTM": ["Sigmoid", "ScaledTanh", "LeakyRelu"]}[kind]
    alphas = {"RNN": ([], []), "GRU": ([0.3], [0.4]), "LSTM": ([0.3], [0.4])}[kind]
    others = {"RNN": ([0.75], [0.25]), "GRU": ([1.5], [0.75]), "LSTM": ([1.5, 0.125], [0.75])}[kind]
    cell(f"{low}_lengths_forward", kind, lengths=[4, 2, 1])
    cell(f"{low}_lengths_bidirectional_state", kind, direction="bidirectional", lengths=[3, 4, 1], state=True)
    cell(f"{low}_activations_with_parameters", kind, activations=other, alpha=others[0], beta=others[1], state=True)
    cell(f"{low}_activations_hard", kind, activations=one, **({"alpha": alphas[0], "beta": alphas[1]} if alphas[0] else {}))
    cell(f"{low}_activations_bidirectional", kind, direction="bidirectional", activations=one + other,
         alpha=alphas[0] + others[0], beta=alphas[1] + others[1])
    cell(f"{low}_clip_tight", kind, clip=0.5, state=True,
         wrong={"onnxruntime": "does not clip the input of h"} if kind == "LSTM" else None)
    cell(f"{low}_no_bias", kind, bias=False)
    cell(f"{low}_reverse", kind, direction="reverse", state=True)
    cell(f"{low}_layout_1", kind, layout=1, state=True)
    cell(f"{low}_layout_1_bidirectional_lengths", kind, layout=1, direction="bidirectional", lengths=[2, 4, 3])
    cell(f"{low}_only_last_state", kind, omit="01" if kind != "LSTM" else "010", lengths=[4, 1, 2])
    cell(f"{low}_only_sequence", kind, opset=7, omit="10" if kind != "LSTM" else "100")
cell("gru_linear_before_reset_plain", "GRU", linear_before_reset=1)
cell("gru_linear_before_reset_bidirectional", "GRU", linear_before_reset=1, direction="bidirectional", lengths=[1, 4, 2], state=True)
cell("lstm_peepholes", "LSTM", peepholes=True, state=True)
cell("lstm_peepholes_bidirectional", "LSTM", peepholes=True, direction="bidirectional", lengths=[4, 3, 1])
cell("lstm_input_forget", "LSTM", input_forget=1)
cell("lstm_only_cell", "LSTM", omit="001", state=True)
# More samples than go through time together, and units that fill no whole number of vectors or panels.
for kind in ("RNN", "GRU", "LSTM"):
    cell(f"{kind.lower()}_six_samples_lengths", kind, lengths=[2, 4, 1, 3, 4, 1], direction="bidirectional", state=True, sizes=(4, 6, 3, 11))
    cell(f"{kind.lower()}_two_samples", kind, lengths=[5, 3], direction="reverse", sizes=(5, 2, 2, 9), layout=1)
    cell(f"{kind.lower()}_one_sample_wide", kind, sizes=(3, 1, 5, 34))
cell("gru_linear_before_reset_six_samples", "GRU", linear_before_reset=1, lengths=[2, 4, 1, 3, 4, 2], sizes=(4, 6, 3, 11))
cell("lstm_peepholes_five_samples", "LSTM", peepholes=True, lengths=[1, 4, 2, 4, 3], state=True, sizes=(4, 5, 2, 11))
cell("gru_1", "GRU", opset=1, attributes={"output_sequence": 1})
