# SPDX-License-Identifier: Apache-2.0
"""Cases of ai.onnx.ml for compare_nodes.py."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from node_cases import Case, peer_outputs, rng_for

F, I, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
TYPES = [np.float32, np.float64, np.int64, np.int32]


def ml(op, inputs, attributes=None, outputs=1, types=(F,), **more):
    return Case(op, inputs, attributes, outputs, domain="ai.onnx.ml", types=list(types), **more)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def strings(*texts):
    return np.array(texts, dtype=object)


def features():
    rng = rng_for("features")
    x = rng.normal(size=(4, 5)).astype(np.float32)
    yield ml("ArrayFeatureExtractor", [x, np.array([3, 0, 0], np.int64)])
    yield ml("ArrayFeatureExtractor", [x.reshape(2, 2, 5), np.array([[4, 1]], np.int64)])
    yield ml("ArrayFeatureExtractor", [x[0], np.array([2, 1], np.int64)])
    yield ml("ArrayFeatureExtractor", [strings("a", "b", "c"), np.array([2, 0], np.int64)], types=[S])
    yield ml("Binarizer", [x], {"threshold": 0.25})
    yield ml("FeatureVectorizer", [x, x * 2], {"inputdimensions": [5, 5]})
    yield ml("FeatureVectorizer", [x, x * 2], {"inputdimensions": [3, 7]})
    yield ml("FeatureVectorizer", [x[0], x[1]], {"inputdimensions": [5, 5]})
    y = x.copy()
    y[0, 1] = y[2, 3] = np.nan
    yield ml("Imputer", [y], {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")})
    yield ml("Imputer", [y], {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0, 5.0], "replaced_value_float": float("nan")})
    whole = rng.integers(-1, 2, size=(4, 5))
    yield ml("Imputer", [whole], {"imputed_value_int64s": [7], "replaced_value_int64": -1}, types=[I])
    yield ml("Imputer", [whole.astype(np.float32)], {"imputed_value_floats": [7.0], "replaced_value_float": 0.0})
    z = x.copy()
    z[1] = 0
    z[2] = -np.abs(z[2])
    for norm in ["MAX", "L1", "L2"]:
        for kind in TYPES:
            yield ml("Normalizer", [(z * 4).astype(kind)], {"norm": norm})
        yield ml("Normalizer", [z[0]], {"norm": norm})
    for kind in TYPES:
        yield ml("Scaler", [(x * 4).astype(kind)], {"offset": [0.5], "scale": [2.0]})
        yield ml("Scaler", [(x * 4).astype(kind)], {"offset": [0.5, 1, 2, 3, 4], "scale": [2.0, 1, 3, -1, 0.5]})
    yield ml("Scaler", [x.reshape(2, 2, 5)], {"offset": [0.5], "scale": [2.0]})


def encoders():
    names = strings("b", "a", "x", "b")
    yield ml("CategoryMapper", [names], {"cats_strings": ["a", "b"], "cats_int64s": [5, 7], "default_int64": -3}, types=[I])
    yield ml("CategoryMapper", [np.array([7, 5, 1])], {"cats_strings": ["a", "b"], "cats_int64s": [5, 7], "default_string": "?"}, types=[S])
    yield ml("LabelEncoder", [names], {"classes_strings": ["a", "b"], "default_int64": -4}, types=[I], version=1)
    yield ml("LabelEncoder", [np.array([1, 0, 5])], {"classes_strings": ["a", "b"], "default_string": "?"}, types=[S], version=1)
    lists = {"strings": (["a", "b", "c"], names, S), "int64s": ([4, 5, 6], np.array([[5, 6], [0, 4]]), I),
             "floats": ([0.5, 1.5, -2.0], np.array([[1.5, 0.5, 9.0]], np.float32), F)}
    defaults = {"strings": ("default_string", "none"), "int64s": ("default_int64", -9), "floats": ("default_float", 0.25)}
    for key, (keys, x, _) in lists.items():
        for value, (values, _, kind) in lists.items():
            yield ml("LabelEncoder", [x], {f"keys_{key}": keys, f"values_{value}": values}, types=[kind], version=2)
            name, default = defaults[value]
            yield ml("LabelEncoder", [x], {f"keys_{key}": keys, f"values_{value}": values, name: default}, types=[kind], version=2)
    nan = np.array([np.nan, 1.0, 2.0], np.float32)
    yield ml("LabelEncoder", [nan], {"keys_floats": [float("nan"), 1.0], "values_int64s": [3, 4]}, types=[I], version=4)
    tensor = {"keys_tensor": numpy_helper.from_array(np.array([1.0, 2.5])), "values_tensor": numpy_helper.from_array(np.array([0.5, 7.0])),
              "default_tensor": numpy_helper.from_array(np.array([-1.5]))}
    yield ml("LabelEncoder", [np.array([2.5, 0.0, 1.0])], tensor, types=[TensorProto.DOUBLE], version=4)
    small = {"keys_tensor": numpy_helper.from_array(np.array(["a", "b"], object)), "default_tensor": numpy_helper.from_array(np.array([-1], np.int16)),
             "values_tensor": numpy_helper.from_array(np.array([10, 20], np.int16))}
    yield ml("LabelEncoder", [names], small, types=[TensorProto.INT16], version=4)
    repeated = {"keys_int64s": [1, 1, 2], "values_int64s": [10, 20, 30]}
    yield ml("LabelEncoder", [np.array([1, 2, 3])], repeated, types=[I], version=4, expected=[np.array([20, 30, -1])],
             note="the page: the last of equal keys counts; onnxruntime takes the first")
    yield ml("OneHotEncoder", [names], {"cats_strings": ["a", "b", "c"]})
    yield ml("OneHotEncoder", [np.array([[2, 0], [1, 5]])], {"cats_int64s": [0, 1, 2]})
    yield ml("OneHotEncoder", [np.array([[2, 0.7], [1, 5]], np.float32)], {"cats_int64s": [0, 1, 2]})
    yield ml("OneHotEncoder", [np.array([[2, 0], [1, 1]])], {"cats_int64s": [0, 1, 2], "zeros": 0})


def maps():
    numbers = {3: 1.5, 0: 2.0, 7: -1.25}
    for form in ({"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 9}):
        yield ml("CastMap", [numbers], {"cast_to": "TO_FLOAT", **form})
        yield ml("CastMap", [numbers], {"cast_to": "TO_INT64", **form}, types=[I])
        sparse, why = "max_map" in form, "onnxruntime's Python takes no map from integers to strings"
        floats = [0, -3, 4.5, 0, 0, 0, 0, 0, 0] if sparse else [-3, 4.5]
        texts = strings(*(["", "b", "a"] + [""] * 6 if sparse else ["b", "a"]))
        yield ml("CastMap", [{2: "4.5", 1: "-3"}], {"cast_to": "TO_FLOAT", **form}, expected=[np.array([floats])], note=why)
        yield ml("CastMap", [{2: "a", 1: "b"}], {"cast_to": "TO_STRING", **form}, types=[S], expected=[texts[None]], note=why)
    yield ml("CastMap", [numbers], {"cast_to": "TO_STRING"}, types=[S], expected=[strings("2", "1.5", "-1.25").reshape(1, 3)],
             note="the page leaves the text of a float open; onnxruntime writes six decimals")
    yield ml("DictVectorizer", [{"c": 4.0, "a": 8.0}], {"string_vocabulary": ["a", "b", "c"]})
    yield ml("DictVectorizer", [{5: 4.0, 1: 8.0}], {"int64_vocabulary": [1, 3, 5]})
    why = "onnxruntime's Python takes maps to floats alone"
    yield ml("DictVectorizer", [{"c": 4, "a": 8}], {"string_vocabulary": ["a", "b", "c"]}, types=[I], expected=[np.array([[8, 0, 4]])], note=why)
    yield ml("DictVectorizer", [{5: "x", 1: "y"}], {"int64_vocabulary": [1, 3, 5]}, types=[S], expected=[strings("y", "", "x")[None]], note=why)
    x = rng_for("zipmap").normal(size=(3, 2)).astype(np.float32)
    for key, name, labels in ((TensorProto.INT64, "classlabels_int64s", [4, 2]), (S, "classlabels_strings", ["p", "q"])):
        kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, helper.make_tensor_type_proto(F, [])))
        yield ml("ZipMap", [x], {name: labels}, types=[kind])


def linear():
    rng = rng_for("linear")
    x = rng.normal(size=(6, 3)).astype(np.float32)
    for kind in TYPES:
        for transform in TRANSFORMS:
            many = {"coefficients": rng.normal(size=12).tolist(), "intercepts": rng.normal(size=4).tolist(), "post_transform": transform}
            yield ml("LinearClassifier", [(x * 3).astype(kind)], {**many, "classlabels_ints": [4, 2, 9, 1]}, 2, [I, F])
            yield ml("LinearClassifier", [(x * 3).astype(kind)], {**many, "classlabels_strings": list("abcd")}, 2, [S, F])
    one = {"coefficients": rng.normal(size=3).tolist(), "intercepts": [0.1]}
    for transform in ["NONE", "LOGISTIC"]:
        yield ml("LinearClassifier", [x], {**one, "classlabels_ints": [4, 2], "post_transform": transform}, 2, [I, F])
    score = x.astype(np.float64) @ np.array(one["coefficients"]) + 0.1
    two = np.stack([-score, score], axis=1)
    yield ml("LinearClassifier", [x], {**one, "classlabels_ints": [4, 2], "post_transform": "SOFTMAX"}, 2, [I, F],
             expected=[np.where(score > 0, 2, 4), softmax(two)], note="onnxruntime leaves the softmax out here")
    for targets in (1, 3):
        for intercepts in ({}, {"intercepts": rng.normal(size=targets).tolist()}):
            yield ml("LinearRegressor", [x], {"coefficients": rng.normal(size=3 * targets).tolist(), "targets": targets, **intercepts})
    for transform in TRANSFORMS:
        yield ml("LinearRegressor", [x], {"coefficients": rng.normal(size=9).tolist(), "targets": 3, "post_transform": transform})


def svm():
    rng = rng_for("svm")
    x = rng.normal(size=(8, 4)).astype(np.float32)
    params = [0.35, 0.2, 3.0]
    for kernel in ["LINEAR", "POLY", "RBF", "SIGMOID"]:
        for classes in (2, 3, 5):
            counts = [int(n) for n in rng.integers(1, 4, size=classes)]
            total, pairs = sum(counts), classes * (classes - 1) // 2
            model = {"kernel_type": kernel, "kernel_params": params, "vectors_per_class": counts, "rho": rng.normal(size=pairs).tolist(),
                     "support_vectors": rng.normal(size=total * 4).tolist(), "coefficients": rng.normal(size=(classes - 1) * total).tolist()}
            labels = {"classlabels_ints": list(range(10, 10 + classes))}
            yield ml("SVMClassifier", [x], {**model, **labels}, 2, [I, F])
            yield ml("SVMClassifier", [x], {**model, "classlabels_strings": list("abcde")[:classes]}, 2, [S, F])
            yield ml("SVMClassifier", [x], {**model, **labels, "post_transform": "LOGISTIC"}, 2, [I, F])
            proba = {"prob_a": (-np.abs(rng.normal(size=pairs))).tolist(), "prob_b": rng.normal(size=pairs).tolist()}
            yield ml("SVMClassifier", [x], {**model, **labels, **proba}, 2, [I, F])
        for one_class in (0, 1):
            model = {"kernel_type": kernel, "kernel_params": params, "n_supports": 6, "rho": [0.1], "one_class": one_class,
                     "support_vectors": rng.normal(size=24).tolist(), "coefficients": rng.normal(size=6).tolist()}
            yield ml("SVMRegressor", [x], model)
    yield ml("SVMRegressor", [x], {"kernel_type": "LINEAR", "kernel_params": params, "rho": [0.4], "coefficients": rng.normal(size=4).tolist()})
    weights = rng.normal(size=(2, 4))
    scores = x.astype(np.float64) @ weights.T + 0.4
    yield ml("SVMClassifier", [x], {"kernel_type": "LINEAR", "kernel_params": params, "rho": [0.4], "classlabels_ints": [1, 2],
                                    "coefficients": weights.ravel().tolist()}, 2, [I, F], expected=[scores.argmax(1) + 1, scores],
             note="no support vectors; onnxruntime answers the second label whenever some score is positive")


def grow(rng, depth, features, tree, nodes, mode):
    """A random binary tree as tuples (tree, id, feature, mode, value, true id, false id, missing)."""
    own = len([n for n in nodes if n[0] == tree])
    if depth == 0 or (own > 0 and rng.random() < 0.2):
        nodes.append([tree, own, 0, "LEAF", 0.0, 0, 0, 0])
        return own
    position = len(nodes)
    nodes.append([tree, own, int(rng.integers(features)), mode or "BRANCH_LEQ", round(float(rng.normal()), 1), 0, 0, int(rng.integers(2))])
    nodes[position][5] = grow(rng, depth - 1, features, tree, nodes, mode)
    nodes[position][6] = grow(rng, depth - 1, features, tree, nodes, mode)
    return own


def forest(rng, trees, features, mode=None, missing=True):
    nodes = []
    for tree in range(trees):
        grow(rng, 4, features, tree, nodes, mode)
    keys = ["nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values", "nodes_truenodeids", "nodes_falsenodeids",
            "nodes_missing_value_tracks_true"]
    attributes = {key: [node[k] for node in nodes] for k, key in enumerate(keys)}
    if not missing:
        del attributes["nodes_missing_value_tracks_true"]
    leaves = [(node[0], node[1]) for node in nodes if node[3] == "LEAF"]
    return attributes, leaves


def votes(rng, leaves, kind, targets, many, positive=False):
    pairs = [(leaf, target) for leaf in leaves for target in (range(targets) if many else [int(rng.integers(targets))])]
    weights = rng.normal(size=len(pairs)).astype(np.float32)
    return {f"{kind}_treeids": [leaf[0] for leaf, _ in pairs], f"{kind}_nodeids": [leaf[1] for leaf, _ in pairs],
            f"{kind}_ids": [target for _, target in pairs], f"{kind}_weights": (np.abs(weights) if positive else weights).tolist()}


def trees():
    rng = rng_for("trees")
    x = np.round(rng.normal(size=(20, 5)), 1).astype(np.float32)
    holes = x.copy()
    holes[rng.random(x.shape) < 0.2] = np.nan
    for mode in ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]:
        nodes, leaves = forest(rng, 4, 5, mode)
        yield ml("TreeEnsembleRegressor", [x], {**nodes, **votes(rng, leaves, "target", 1, False), "n_targets": 1})
        if mode != "BRANCH_NEQ":  # onnxruntime: NaN differs from every threshold, whatever tracks_true says
            yield ml("TreeEnsembleRegressor", [holes], {**nodes, **votes(rng, leaves, "target", 2, True), "n_targets": 2})
    for aggregate in ["SUM", "AVERAGE", "MIN", "MAX"]:
        for base in ([], [0.5, -1.0, 2.0]):
            nodes, leaves = forest(rng, 6, 5)
            more = {"aggregate_function": aggregate, "n_targets": 3, **({"base_values": base} if base else {})}
            yield ml("TreeEnsembleRegressor", [x], {**nodes, **votes(rng, leaves, "target", 3, True), **more})
    for transform in TRANSFORMS:
        nodes, leaves = forest(rng, 6, 5)
        yield ml("TreeEnsembleRegressor", [x], {**nodes, **votes(rng, leaves, "target", 3, True), "n_targets": 3, "post_transform": transform})
        for labels, kind in (({"classlabels_int64s": [5, 3, 8]}, I), ({"classlabels_strings": list("abc")}, S)):
            yield ml("TreeEnsembleClassifier", [x], {**nodes, **votes(rng, leaves, "class", 3, True), **labels, "post_transform": transform},
                     2, [kind, F])
    nodes, leaves = forest(rng, 6, 5, missing=False)
    for transform in ["NONE", "LOGISTIC"]:
        yield ml("TreeEnsembleClassifier", [x], {**nodes, **votes(rng, leaves, "class", 1, True), "classlabels_int64s": [5, 3],
                                                 "post_transform": transform}, 2, [I, F], note="one column of votes, of both signs")
    yield ml("TreeEnsembleClassifier", [x], {**nodes, **votes(rng, leaves, "class", 1, True, positive=True), "classlabels_int64s": [5, 3]},
             2, [I, F], note="one column of votes, none negative")
    two = votes(rng, leaves, "class", 2, True)
    yield ml("TreeEnsembleClassifier", [x], {**nodes, **two, "classlabels_int64s": [0, 1]}, 2, [I, F], note="two columns of votes")
    yield ml("TreeEnsembleRegressor", [x.astype(np.float64)], {**nodes, **votes(rng, leaves, "target", 1, False), "n_targets": 1}, version=1)
    for kind in (np.float64, np.int64, np.int32):
        yield ml("TreeEnsembleClassifier", [(x * 3).astype(kind)], {**nodes, **votes(rng, leaves, "class", 3, True),
                                                                    "classlabels_int64s": [5, 3, 1]}, 2, [I, F], version=1)
    nodes, leaves = forest(rng, 3, 5)
    wide = {key: value for key, value in nodes.items() if key != "nodes_values"}
    wide["nodes_values_as_tensor"] = numpy_helper.from_array(np.array(nodes["nodes_values"]))
    cast = votes(rng, leaves, "target", 1, False)
    cast["target_weights_as_tensor"] = numpy_helper.from_array(np.array(cast.pop("target_weights"), np.float64))
    yield ml("TreeEnsembleRegressor", [x.astype(np.float64)], {**wide, **cast, "n_targets": 1})
    yield from position_trees(rng, x)


def position_trees(rng, x):
    """TreeEnsemble-5: two trees of two branches and three leaves each."""
    for kind in (np.float32, np.float64):
        tensor = lambda values, t=kind: numpy_helper.from_array(np.array(values, t))
        attributes = {"nodes_featureids": [0, 1, 2, 3], "nodes_splits": tensor([0.1, -0.3, 0.2, 0.0]), "nodes_modes": tensor([0, 3, 1, 2], np.uint8),
                      "nodes_truenodeids": [1, 0, 3, 3], "nodes_trueleafs": [0, 1, 0, 1], "nodes_falsenodeids": [2, 1, 5, 4],
                      "nodes_falseleafs": [1, 1, 1, 1], "tree_roots": [0, 2], "leaf_targetids": [0, 1, 0, 1, 0, 1],
                      "leaf_weights": tensor(rng.normal(size=6)), "n_targets": 2}
        for aggregate in range(4):
            make = lambda transform, **more: ml("TreeEnsemble", [x.astype(kind)],
                                                {**attributes, "aggregate_function": aggregate, "post_transform": transform},
                                                types=[TensorProto.FLOAT if kind == np.float32 else TensorProto.DOUBLE], version=5, **more)
            yield make(0)
            sums = peer_outputs(make(0))[0]
            for transform, function in ((1, softmax), (2, sigmoid)):
                yield make(transform, expected=[function(sums)], note="the page: SOFTMAX is 1, LOGISTIC 2; onnxruntime has them the other way")


def cases():
    for family in (features, encoders, maps, linear, svm, trees):
        yield from family()
