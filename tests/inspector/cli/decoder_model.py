# SPDX-License-Identifier: Apache-2.0
"""A small decoder with caches as text: two layers, two heads, rotary positions, RMS normalization; and its faults.

Each fault is a mistake of the field in the handling of caches, positions or masks; `FAULTS` says which node it is in.
"""

import math
import random

VOCABULARY, HIDDEN, HEADS, SIZE, LAYERS, POSITIONS = 24, 8, 2, 4, 2, 64
TYPES = {"int": 7, "float": 1, "bool": 9, "int32": 6}

# Fault -> the nodes that may be named: those that the faulty graph has in excess, or where the two graphs part.
FAULTS = {
    "position_off_by_one": {"l0.key_cosine", "next_position"},
    "swapped_heads": {"l0.swap_heads"},
    "stale_rows": {"l1.stale_rows"},
    "missing_epsilon": {"l1.norm_epsilon", "l1.norm_root"},
    "wrong_scale": {"l1.scale"},
    "shifted_mask": {"causal", "diagonal_2"},
    "past_of_another_layer": {"l1.join_key"},
    "transposed_value": {"l0.shuffle_value", "l0.value_transposed"},
    "dropped_last_past_row": {"l1.shift_past", "l1.first_row", "l1.all_but_last"},
    "half_precision_rotary": {"cosine", "cosine_half", "cosine_back"},
    "past_is_ignored": {"l0.join_value", "l0.no_past"},
    "mask_is_ignored": {"padding_bias", "no_padding"},
}


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.random = [], [], random.Random(3)

    def op(self, kind, inputs, output, *attributes, name=None, domain=""):
        outputs = output.split()
        text = "".join(f'input: "{i}" ' for i in inputs.split()) + "".join(f'output: "{o}" ' for o in outputs)
        text += "".join(attribute_text(*a) for a in attributes)
        self.nodes.append(f'node {{ op_type: "{kind}" name: "{name or outputs[0]}" domain: "{domain}" {text}}}')
        return outputs[0]

    def ints(self, name, *values, scalar=False):
        dims = "" if scalar else f"dims: {len(values)} "
        self.weights.append(f'initializer {{ name: "{name}" data_type: 7 {dims}' + "".join(f"int64_data: {v} " for v in values) + "}")

    def floats(self, name, dims, values):
        self.weights.append(f'initializer {{ name: "{name}" data_type: 1 ' + "".join(f"dims: {d} " for d in dims)
                            + "".join(f"float_data: {v:.6g} " for v in values) + "}")

    def noise(self, name, *dims, gain=1.0):
        count = math.prod(dims)
        self.floats(name, dims, [self.random.gauss(0, gain / math.sqrt(dims[0])) for _ in range(count)])


def lengths_of_mask(g):
    """seqlens_k and total_sequence_length from attention_mask, as onnxruntime-genai's builder computes them."""
    g.ints("axis_1", 1)
    g.ints("index_1", 1, scalar=True)
    g.op("ReduceSum", "attention_mask axis_1", "row_sums", ("keepdims", "INT", 0))
    g.op("Sub", "row_sums i_one", "last_rows")
    g.op("Cast", "last_rows", "seqlens_k", ("to", "INT", 6))
    g.op("Shape", "attention_mask", "mask_shape")
    g.op("Gather", "mask_shape index_1", "mask_length")
    g.op("Cast", "mask_length", "total_sequence_length", ("to", "INT", 6))
    return [tensor("input", "attention_mask", "int", "batch", "total")]


def grouped_decoder(has_mask=False):
    """One layer of com.microsoft.GroupQueryAttention, as onnxruntime-genai runs it: lengths of rows in place of a mask,
    or computed from one."""
    g = Graph()
    constants(g)
    g.floats("cos_cache", (POSITIONS, SIZE // 2), [math.cos(p / 10 ** i) for p in range(POSITIONS) for i in range(SIZE // 2)])
    g.floats("sin_cache", (POSITIONS, SIZE // 2), [math.sin(p / 10 ** i) for p in range(POSITIONS) for i in range(SIZE // 2)])
    g.op("Gather", "embedding input_ids", "embedded")
    for name in ("query", "key", "value"):
        g.noise(f"{name}_weight", HIDDEN, HIDDEN)
        g.op("MatMul", f"embedded {name}_weight", name)
    lengths = lengths_of_mask(g) if has_mask else [tensor("input", "seqlens_k", "int32", "batch"),
                                                   tensor("input", "total_sequence_length", "int32")]
    g.op("GroupQueryAttention", "query key value past_key_values.0.key past_key_values.0.value seqlens_k total_sequence_length "
         "cos_cache sin_cache", "attended present.0.key present.0.value", ("num_heads", "INT", HEADS),
         ("kv_num_heads", "INT", HEADS), ("do_rotary", "INT", 1), domain="com.microsoft")
    g.op("Add", "embedded attended", "sum")
    g.noise("head_weight", HIDDEN, VOCABULARY, gain=3)
    g.op("MatMul", "sum head_weight", "logits", name="head")
    declared = [tensor("input", "input_ids", "int", "batch", "sequence"), *lengths]
    declared += [tensor("input", f"past_key_values.0.{c}", "float", "batch", HEADS, "past", SIZE) for c in ("key", "value")]
    declared += [tensor("output", "logits", "float", "batch", "sequence", VOCABULARY)]
    declared += [tensor("output", f"present.0.{c}", "float", "batch", HEADS, "total", SIZE) for c in ("key", "value")]
    text = text_of(g, declared, "grouped", 18)
    return text.replace("graph {", 'opset_import { domain: "com.microsoft" version: 1 }\ngraph {', 1)


def encoder():
    """The encoder of the pair that seq2seq_decoder makes."""
    g = Graph()
    g.noise("embedding", VOCABULARY, HIDDEN, gain=math.sqrt(VOCABULARY))
    g.op("Gather", "embedding input_ids", "embedded")
    g.op("Tanh", "embedded", "last_hidden_state")
    declared = [tensor("input", "input_ids", "int", "batch", "states"), tensor("input", "attention_mask", "int", "batch", "states"),
                tensor("output", "last_hidden_state", "float", "batch", "states", HIDDEN)]
    return text_of(g, declared, "encoder", 18)


def seq2seq_decoder(with_past, opset=18):
    """A layer with attention to itself and to the encoder, for one token at a time: of the first step, which makes the
    encoder's keys, or of later ones, which read them and do not return them, as Optimum exports both."""
    g = Graph()
    g.noise("decoder_embedding", VOCABULARY, HIDDEN, gain=math.sqrt(VOCABULARY))
    g.ints("axis_1", 1)
    g.ints("mask_axes", 1, 2)
    g.floats("one", (), [1])
    g.floats("far", (), [1e9])
    g.op("Gather", "decoder_embedding input_ids", "tokens")
    g.op("Unsqueeze", "tokens axis_1", "x")
    own, cross = "x", "past_key_values.0.encoder.key"
    if with_past:
        own = "past_key_values.0.decoder.key x"
    else:
        g.op("Unsqueeze", "encoder_hidden_states axis_1", "states")
        g.noise("cross_weight", HIDDEN, HIDDEN)
        cross = g.op("MatMul", "states cross_weight", "present.0.encoder.key")
    g.op("Concat", own, "present.0.decoder.key", ("axis", "INT", 2))
    g.op("Cast", "encoder_attention_mask", "seen", ("to", "INT", 1))
    g.op("Sub", "seen one", "hidden")
    g.op("Mul", "hidden far", "flat_bias")
    g.op("Unsqueeze", "flat_bias mask_axes", "bias")
    for name, keys in {"self": "present.0.decoder.key", "cross": cross}.items():
        g.op("Transpose", keys, f"{name}_transposed", ("perm", "INTS", (0, 1, 3, 2)))
        scores = g.op("MatMul", f"x {name}_transposed", f"{name}_scores")
        if name == "cross":
            scores = g.op("Add", f"{scores} bias", "masked_scores")
        g.op("Softmax", scores, f"{name}_weights", ("axis", "INT", -1))
        g.op("MatMul", f"{name}_weights {keys}", f"{name}_context")
    g.op("Add", "self_context cross_context", "context")
    g.op("Squeeze", "context axis_1", "rows")
    g.noise("head_weight", HIDDEN, VOCABULARY, gain=3)
    g.op("MatMul", "rows head_weight", "logits", name="head")

    def key(kind, name, length):
        return tensor(kind, name, "float", "batch", 1, length, HIDDEN)

    declared = [tensor("input", "input_ids", "int", "batch", "sequence"),
                tensor("input", "encoder_attention_mask", "int", "batch", "states")]
    if with_past:
        declared += [key("input", "past_key_values.0.decoder.key", "past"), key("input", cross, "states")]
    else:
        declared += [tensor("input", "encoder_hidden_states", "float", "batch", "states", HIDDEN), key("output", cross, "states")]
    declared += [tensor("output", "logits", "float", "batch", "sequence", VOCABULARY), key("output", "present.0.decoder.key", "total")]
    return text_of(g, declared, "seq2seq", opset)


def text_of(g, declared, name, opset):
    text = "\n".join(g.nodes + g.weights + declared)
    return f'ir_version: 8\nopset_import {{ version: {opset} }}\ngraph {{\nname: "{name}"\n{text}\n}}\n'


def attribute_text(name, kind, value):
    field = {"INT": "i", "FLOAT": "f", "INTS": "ints", "STRING": "s"}[kind]
    values = value if isinstance(value, (list, tuple)) else [value]
    return f"attribute {{ name: '{name}' type: {kind} " + "".join(f"{field}: {v} " for v in values) + "} "


def tensor(kind, name, dtype, *dims):
    text = "".join(f"dim {{ dim_value: {d} }} " if isinstance(d, int) else f"dim {{ dim_param: '{d}' }} " for d in dims)
    return f"{kind} {{ name: '{name}' type {{ tensor_type {{ elem_type: {TYPES[dtype]} shape {{ {text}}} }} }} }}"


def constants(g):
    g.noise("embedding", VOCABULARY, HIDDEN, gain=math.sqrt(VOCABULARY))
    angles = [[p / 100 ** (2 * (i % (SIZE // 2)) / SIZE) for i in range(SIZE)] for p in range(POSITIONS)]
    g.floats("cosine_table", (POSITIONS, SIZE), [math.cos(a) for row in angles for a in row])
    g.floats("sine_table", (POSITIONS, SIZE), [math.sin(a) for row in angles for a in row])
    for name, value in {"one": 1, "low": -1e9, "scale_by": 1 / math.sqrt(SIZE), "wrong_scale_by": 1 / SIZE, "epsilon": 1e-2}.items():
        g.floats(name, (), [value])
    for name, values in {"i_one": [1], "i_zero": [0], "i_minus": [-1], "first_axes": [1, 2], "axis_2": [2], "two": [2], "axis_0": [0], "last": [-1],
                         "lowest": [-(2 ** 62)], "heads": [0, 0, HEADS, SIZE], "flat": [0, 0, HIDDEN], "swap": [1, 0]}.items():
        g.ints(name, *values)
    g.ints("zero_d", 0, scalar=True)
    g.ints("one_d", 1, scalar=True)


def masks(g, fault, kind):
    """`kind`: of attention_mask: 2-D integers, or what exporters make of causal masks: 4-D floats or bool."""
    if kind == "float":
        g.op("Max", "attention_mask low", "bias")
        return
    if kind == "bool":
        g.op("Where", "attention_mask nothing low", "bias")
        return
    g.op("Shape", "attention_mask", "mask_shape")
    g.op("Shape", "input_ids", "ids_shape")
    g.op("Slice", "mask_shape i_one two zero_axis", "total")
    g.op("Slice", "ids_shape i_one two zero_axis", "length")
    g.op("Concat", "length total", "square", ("axis", "INT", 0))
    g.op("ConstantOfShape", "square", "zeros")
    g.op("Add", "zeros one", "ones")
    g.op("Sub", "total length", "past_length")
    shift = g.op("Add", "past_length i_one", "diagonal_1")
    if fault == "shifted_mask":
        shift = g.op("Add", "diagonal_1 i_one", "diagonal_2")
    g.op("Squeeze", shift, "diagonal")
    g.op("Trilu", "ones diagonal", "causal", ("upper", "INT", 1))
    g.op("Cast", "attention_mask", "seen", ("to", "INT", 1))
    g.op("Sub", "one seen", "hidden")
    if fault == "mask_is_ignored":
        g.op("Sub", "hidden hidden", "no_padding")
    g.op("Unsqueeze", ("no_padding" if fault == "mask_is_ignored" else "hidden") + " first_axes", "padding_bias")
    g.op("Max", "padding_bias causal", "closed")
    g.op("Mul", "closed low", "bias")


def rotary_tables(g, fault):
    table = "cosine_table"
    if fault == "half_precision_rotary":
        g.op("Cast", "cosine_table", "cosine_half", ("to", "INT", 10))
        table = g.op("Cast", "cosine_half", "cosine_back", ("to", "INT", 1))
    for name, values in {"cosine": table, "sine": "sine_table"}.items():
        g.op("Gather", f"{values} position_ids", f"{name}_rows", name=name if name == "cosine" else "sine_rows")
        g.op("Unsqueeze", f"{name}_rows i_one", name, name=f"{name}_unsqueeze")
    if fault == "position_off_by_one":
        g.op("Add", "position_ids one_d", "next_position")
        g.op("Gather", "cosine_table next_position", "next_rows", name="l0.key_cosine")
        g.op("Unsqueeze", "next_rows i_one", "next_cosine")


def norm(g, x, prefix, fault):
    g.floats(f"{prefix}_weight", (HIDDEN,), [1 + 0.1 * i for i in range(HIDDEN)])
    g.op("Mul", f"{x} {x}", f"{prefix}_square")
    g.op("ReduceMean", f"{prefix}_square last", f"{prefix}_mean")
    mean = f"{prefix}_mean"
    if not (fault == "missing_epsilon" and prefix == "l1.norm"):
        mean = g.op("Add", f"{mean} epsilon", f"{prefix}_epsilon")
    g.op("Sqrt", mean, f"{prefix}_root")
    g.op("Div", f"{x} {prefix}_root", f"{prefix}_unit")
    return g.op("Mul", f"{prefix}_unit {prefix}_weight", prefix)


def head(g, x, prefix, gain=1.0):
    g.noise(f"{prefix}_weight", HIDDEN, HIDDEN, gain=gain)
    g.op("MatMul", f"{x} {prefix}_weight", f"{prefix}_flat")
    g.op("Reshape", f"{prefix}_flat heads", f"{prefix}_split")
    return g.op("Transpose", f"{prefix}_split", prefix, ("perm", "INTS", (0, 2, 1, 3)))


def rotate(g, x, cosine):
    g.op("Split", x, f"{x}_a {x}_b", ("axis", "INT", 3), ("num_outputs", "INT", 2))
    g.op("Neg", f"{x}_b", f"{x}_minus")
    g.op("Concat", f"{x}_minus {x}_a", f"{x}_half", ("axis", "INT", 3))
    g.op("Mul", f"{x} {cosine}", f"{x}_cosine")
    g.op("Mul", f"{x}_half sine", f"{x}_sine")
    return g.op("Add", f"{x}_cosine {x}_sine", f"{x}_rotated")


def caches(g, layer, key, value, fault):
    at = f"l{layer}"
    past = {"key": f"past_key_values.{layer}.key", "value": f"past_key_values.{layer}.value"}
    if fault == "swapped_heads" and layer == 0:
        key = g.op("Gather", f"{key} swap", f"{at}.swapped", ("axis", "INT", 1), name=f"{at}.swap_heads")
    if fault == "past_of_another_layer" and layer == 1:
        past["key"] = "past_key_values.0.key"
    if fault == "stale_rows" and layer == 1:
        past["key"] = g.op("Slice", f"{past['key']} i_minus lowest axis_0 i_minus", f"{at}.reversed", name=f"{at}.stale_rows")
    if fault == "dropped_last_past_row" and layer == 1:
        g.op("Slice", f"{past['key']} i_zero i_one axis_2", f"{at}.first_row")
        g.op("Slice", f"{past['key']} i_zero i_minus axis_2", f"{at}.all_but_last")
        past["key"] = g.op("Concat", f"{at}.first_row {at}.all_but_last", f"{at}.shifted", ("axis", "INT", 2), name=f"{at}.shift_past")
    if fault == "past_is_ignored" and layer == 0:
        past["value"] = g.op("Mul", f"{past['value']} nothing", f"{at}.no_past")
    if fault == "transposed_value" and layer == 0:
        g.op("Shape", value, f"{at}.value_shape")
        g.op("Transpose", value, f"{at}.value_transposed", ("perm", "INTS", (0, 1, 3, 2)))
        value = g.op("Reshape", f"{at}.value_transposed {at}.value_shape", f"{at}.shuffled", name=f"{at}.shuffle_value")
    g.op("Concat", f"{past['key']} {key}", f"present.{layer}.key", ("axis", "INT", 2), name=f"{at}.join_key")
    g.op("Concat", f"{past['value']} {value}", f"present.{layer}.value", ("axis", "INT", 2), name=f"{at}.join_value")
    return f"present.{layer}.key", f"present.{layer}.value"


def layer_of(g, layer, x, fault):
    at = f"l{layer}"
    n = norm(g, x, f"{at}.norm", fault)
    query, key, value = head(g, n, f"{at}.q", 2), head(g, n, f"{at}.k", 2), head(g, n, f"{at}.v")
    wrong = fault == "position_off_by_one" and layer == 0
    key = rotate(g, key, "next_cosine" if wrong else "cosine")
    keys, values = caches(g, layer, key, value, fault)
    g.op("Transpose", keys, f"{at}.keys", ("perm", "INTS", (0, 1, 3, 2)))
    g.op("MatMul", f"{rotate(g, query, 'cosine')} {at}.keys", f"{at}.scores")
    scale = "wrong_scale_by" if fault == "wrong_scale" and layer == 1 else "scale_by"
    g.op("Mul", f"{at}.scores {scale}", f"{at}.scaled", name=f"{at}.scale")
    g.op("Add", f"{at}.scaled bias", f"{at}.masked")
    g.op("Softmax", f"{at}.masked", f"{at}.weights", ("axis", "INT", -1))
    g.op("MatMul", f"{at}.weights {values}", f"{at}.context")
    g.op("Transpose", f"{at}.context", f"{at}.rows", ("perm", "INTS", (0, 2, 1, 3)))
    g.op("Reshape", f"{at}.rows flat", f"{at}.joined")
    g.noise(f"{at}.o_weight", HIDDEN, HIDDEN, gain=3)
    g.op("MatMul", f"{at}.joined {at}.o_weight", f"{at}.attended")
    return g.op("Add", f"{x} {at}.attended", f"{at}.out")


def decoder(fault=None, rename=lambda name: name, leave_out=(), opset=18, mask="int", positions="position_ids"):
    """The model's text. `rename` changes names of inputs and outputs; `leave_out`: outputs that it does not declare;
    `positions`: position_ids, or cache_position, which all rows share."""
    g = Graph()
    constants(g)
    g.ints("zero_axis", 0)
    g.floats("nothing", (), [0])
    if positions == "cache_position":
        g.op("Unsqueeze", "cache_position i_zero", "position_ids")
    masks(g, fault, mask)
    rotary_tables(g, fault)
    x = g.op("Gather", "embedding input_ids", "embedded")
    for layer in range(LAYERS):
        x = layer_of(g, layer, x, fault)
    n = norm(g, x, "final_norm", fault)
    g.noise("head_weight", HIDDEN, VOCABULARY, gain=3)
    g.op("MatMul", f"{n} head_weight", "logits", name="head")
    cache = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    seen = ("int", "batch", "total") if mask == "int" else (mask, "batch", 1, "sequence", "total")
    at = ("int", "sequence") if positions == "cache_position" else ("int", "batch", "sequence")
    declared = [tensor("input", "input_ids", "int", "batch", "sequence"), tensor("input", "attention_mask", *seen),
                tensor("input", positions, *at)]
    declared += [tensor("input", f"past_key_values.{c}", "float", "batch", HEADS, "past", SIZE) for c in cache]
    declared += [tensor("output", "logits", "float", "batch", "sequence", VOCABULARY)]
    declared += [tensor("output", f"present.{c}", "float", "batch", HEADS, "total", SIZE) for c in cache if f"present.{c}" not in leave_out]
    text = "\n".join(g.nodes + g.weights + declared)
    for name in ["input_ids", "attention_mask", "position_ids", "logits"]:
        text = text.replace(f'"{name}"', f'"{rename(name)}"').replace(f"'{name}'", f"'{rename(name)}'")
    return f'ir_version: 8\nopset_import {{ version: {opset} }}\ngraph {{\nname: "decoder"\n{text}\n}}\n'
