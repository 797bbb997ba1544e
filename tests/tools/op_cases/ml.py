# SPDX-License-Identifier: Apache-2.0
"""Cases of ai.onnx.ml: models of trees, lines and support vectors, encoders, maps, features."""
import numpy as np

from .case import NAN, Map, Seq, f32, f64, family, i16, i64, numbers, text, u8

case_in = family("ml")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def case(name, op, version, inputs, attributes=None, outputs=None, **more):
    case_in(f"ml_{name}", op, version, inputs, attributes, outputs, domain="ai.onnx.ml", **more)


X = numbers([5, 3], 801)

case("arrayfeatureextractor", "ArrayFeatureExtractor", 1, [X, i64([2, 0, 2])])
case("arrayfeatureextractor_vector", "ArrayFeatureExtractor", 1, [f32([1, 2, 3]), i64([1])], None, [f32([[2]])],
     spec="ArrayFeatureExtractor: indices apply to the last axis; both peers put an axis in front of a vector", unasked=(EVALUATOR,))
case("binarizer", "Binarizer", 1, [f32([[0.5, 0.25, -1], [0.25, 0.375, NAN]])], {"threshold": 0.25}, [f32([[1, 0, 0], [0, 1, 0]])],
     spec="Binarizer: 1 where x is greater than the threshold, else 0")
case("featurevectorizer", "FeatureVectorizer", 1, [X, numbers([5, 2], 802)], {"inputdimensions": [3, 2]})
case("imputer_nan", "Imputer", 1, [f32([[1, NAN, 3], [NAN, 5, 0]])], {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": NAN},
     [f32([[1, 8, 3], [7, 5, 0]])], spec="Imputer: one imputed value for each feature of the last axis")
case("imputer_integers", "Imputer", 1, [i64([[1, -1], [-1, 4]])], {"imputed_value_int64s": [6], "replaced_value_int64": -1},
     [i64([[1, 6], [6, 4]])], spec="Imputer: elements equal to the replaced value")
case("normalizer_l1", "Normalizer", 1, [X], {"norm": "L1"})
case("normalizer_l2", "Normalizer", 1, [X], {"norm": "L2"})
case("normalizer_max_signed", "Normalizer", 1, [f32([[1, 2, -4], [-2, -1, -4]])], {"norm": "MAX"}, [f32([[0.5, 1, -2], [2, 1, 4]])],
     spec="Normalizer: X / max(X)", wrong={EVALUATOR: "takes the greatest magnitude"})
case("normalizer_zeros", "Normalizer", 1, [f32([[0, 0], [3, 4]])], {"norm": "L2"}, [f32([[0, 0], [0.6, 0.8]])],
     spec="Normalizer: if the divisor is zero, Y == X")
case("scaler", "Scaler", 1, [X], {"offset": [0.5, -1.0, 2.0], "scale": [2.0, 0.25, -1.0]})
case("scaler_one_for_all", "Scaler", 1, [X], {"offset": [0.5], "scale": [2.0]})

NAMES = text(["b", "a", "x", "b"])
case("categorymapper_strings", "CategoryMapper", 1, [NAMES], {"cats_strings": ["a", "b"], "cats_int64s": [5, 7], "default_int64": -3},
     [i64([7, 5, -3, 7])], spec="CategoryMapper: the integer at the string's place, else the default", unasked=(EVALUATOR,))
case("categorymapper_integers", "CategoryMapper", 1, [i64([7, 1, 5])], {"cats_strings": ["a", "b"], "cats_int64s": [5, 7], "default_string": "?"},
     [text(["b", "?", "a"])], spec="CategoryMapper: the string at the integer's place, else the default", unasked=(EVALUATOR,))
case("labelencoder_1", "LabelEncoder", 1, [NAMES], {"classes_strings": ["a", "b"], "default_int64": -4}, [i64([1, 0, -4, 1])],
     spec="LabelEncoder-1: positions in classes_strings", unasked=(EVALUATOR,))
case("labelencoder_2_strings_floats", "LabelEncoder", 2, [NAMES], {"keys_strings": ["a", "b"], "values_floats": [0.5, 1.5], "default_float": 9.0})
case("labelencoder_2_integers_strings", "LabelEncoder", 2, [i64([[4, 5], [6, 4]])], {"keys_int64s": [4, 5], "values_strings": ["p", "q"]},
     [text([["p", "q"], ["_Unused", "p"]])], spec="LabelEncoder-2: default_string is _Unused")
case("labelencoder_4_nan", "LabelEncoder", 4, [f32([NAN, 1, 2])], {"keys_floats": [NAN, 1.0], "values_int64s": [3, 4]}, [i64([3, 4, -1])],
     spec="LabelEncoder-4: a NaN key matches any NaN", wrong={EVALUATOR: "finds no NaN"})
case("labelencoder_4_repeated_key", "LabelEncoder", 4, [i64([1, 2, 3])], {"keys_int64s": [1, 1, 2], "values_int64s": [10, 20, 30]},
     [i64([20, 30, -1])], spec="LabelEncoder-4: if a key is repeated, the last one takes precedence", wrong={ORT: "takes the first"})
case("labelencoder_4_tensors", "LabelEncoder", 4, [f64([2.5, 0, 1])], {"keys_tensor": f64([1, 2.5]), "values_tensor": i16([5, 7]),
     "default_tensor": i16([-2])}, [i16([7, -2, 5])], spec="LabelEncoder-4: keys, values and default as tensors", unasked=(ORT,))
case("onehotencoder_strings", "OneHotEncoder", 1, [NAMES], {"cats_strings": ["a", "b", "c"]}, [f32([[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]])],
     spec="OneHotEncoder: a 1 at the category's place, zeros where there is none")
case("onehotencoder_floats", "OneHotEncoder", 1, [f32([2, 0.75, 1, 5])], {"cats_int64s": [0, 1, 2]},
     [f32([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]])], spec="OneHotEncoder: floats are cast to integers first",
     wrong={EVALUATOR: "compares without the cast"})

PAIRS = Map(i64([3, 0, 7]), [f32(1.5), f32(2.0), f32(-1.25)])
case("castmap_dense", "CastMap", 1, [PAIRS], {"cast_to": "TO_FLOAT"}, [f32([[2, 1.5, -1.25]])],
     spec="CastMap: values in ascending order of the keys", unasked=(EVALUATOR,))
case("castmap_sparse", "CastMap", 1, [PAIRS], {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 8}, [i64([[2, 0, 0, 1, 0, 0, 0, -1]])],
     spec="CastMap: each value at its key's place", unasked=(EVALUATOR,))
case("dictvectorizer", "DictVectorizer", 1, [Map(text(["c", "a"]), [f32(4), f32(8)])], {"string_vocabulary": ["a", "b", "c"]}, [f32([[8, 0, 4]])],
     spec="DictVectorizer: the value of each word of the vocabulary, else 0", unasked=(EVALUATOR,))
case("zipmap", "ZipMap", 1, [f32([[1, 2], [3, -4]])], {"classlabels_strings": ["p", "q"]},
     [Seq([Map(text(["p", "q"]), [f32(1), f32(2)]), Map(text(["p", "q"]), [f32(3), f32(-4)])])],
     spec="ZipMap: a map from labels to the scores of each row", unasked=(EVALUATOR, ORT),
     not_double="the type of maps within a sequence is compared as declared")

LINE = {"coefficients": [0.5, -1.0, 0.25, 1.5, 0.75, -0.5, -0.25, 1.0, 2.0], "intercepts": [0.5, -0.25, 0.125]}
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    case(f"linearclassifier_{transform.lower()}", "LinearClassifier", 1, [X], {**LINE, "classlabels_ints": [7, 3, 9], "post_transform": transform}, count=2)
case("linearclassifier_binary", "LinearClassifier", 1, [X], {"coefficients": LINE["coefficients"][:3], "intercepts": [0.5],
     "classlabels_ints": [7, 3], "post_transform": "LOGISTIC"}, count=2)
case("linearclassifier_strings", "LinearClassifier", 1, [X], {**LINE, "classlabels_strings": ["u", "v", "w"]}, count=2)
case("linearregressor", "LinearRegressor", 1, [X], {**LINE, "targets": 3})

VECTORS = {"kernel_params": [0.5, 0.25, 2.0], "support_vectors": numbers([5, 3], 803).ravel().tolist()}
for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
    case(f"svmregressor_{kernel.lower()}", "SVMRegressor", 1, [X * 0.5], {**VECTORS, "kernel_type": kernel, "n_supports": 5, "rho": [0.25],
         "coefficients": [0.5, -0.25, 1.0, -0.75, 0.125]})
    case(f"svmclassifier_{kernel.lower()}", "SVMClassifier", 1, [X * 0.5], {**VECTORS, "kernel_type": kernel, "vectors_per_class": [2, 1, 2],
         "coefficients": numbers([10], 804).tolist(), "rho": [0.25, -0.5, 0.125], "classlabels_ints": [4, 5, 6]}, count=2)
case("svmregressor_one_class", "SVMRegressor", 1, [X * 0.5], {**VECTORS, "kernel_type": "RBF", "n_supports": 5, "rho": [-0.1], "one_class": 1,
     "coefficients": [0.5, -0.25, 1.0, -0.75, 0.125]})
case("svmclassifier_two_classes", "SVMClassifier", 1, [X * 0.5], {**VECTORS, "kernel_type": "RBF", "vectors_per_class": [3, 2], "rho": [0.125],
     "coefficients": [0.5, -0.25, 1.0, -0.75, 0.125], "classlabels_ints": [3, 8]}, count=2)

# Two trees: (x0 <= 0.25 ? (x1 > -0.5 ? a : b) : c) and (x2 < 0 ? d : e).
NODES = {"nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2], "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
         "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
         "nodes_values": [0.25, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
         "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0]}
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2]}


def votes(kind, ids, weights):
    repeated = len(ids) // 5
    return {**NODES, **{f"{kind}_{key}": [n for n in values for _ in range(repeated)] for key, values in LEAVES.items()},
            f"{kind}_ids": ids, f"{kind}_weights": weights}


TWO = votes("target", [0, 1] * 5, [1.5, -0.5, 0.25, 2.0, -1.0, 0.75, 0.5, 0.125, -2.5, 3.0])
for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
    case(f"treeensembleregressor_{aggregate.lower()}", "TreeEnsembleRegressor", 3, [X], {**TWO, "n_targets": 2, "aggregate_function": aggregate})
case("treeensembleregressor_base", "TreeEnsembleRegressor", 1, [X], {**TWO, "n_targets": 2, "base_values": [10.0, -20.0]})
MISSING = f32([[NAN, 0, 1], [0, NAN, -1], [0, 0, NAN]])
case("treeensembleregressor_missing", "TreeEnsembleRegressor", 3, [MISSING], {**votes("target", [0] * 5, [1.0, 2.0, 4.0, 8.0, 16.0]), "n_targets": 1,
     "nodes_missing_value_tracks_true": [0, 1, 0, 0, 0, 1, 0, 0]}, [f32([[20], [9], [9]])],
     spec="TreeEnsembleRegressor: a NaN takes the branch that nodes_missing_value_tracks_true names")
THREE = votes("class", [0, 1, 2, 0, 2], [1.5, 0.25, 0.75, -0.5, 1.0])
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    case(f"treeensembleclassifier_{transform.lower()}", "TreeEnsembleClassifier", 3, [f32([[0, 0, 1], [0, -1, 1], [1, 0, 1], [1, 1, -1]])],
         {**THREE, "classlabels_int64s": [4, 8, 6], "post_transform": transform}, count=2)
case("treeensembleclassifier_binary", "TreeEnsembleClassifier", 3, [X], {**votes("class", [0] * 5, [0.5, 0.125, 0.25, 0.375, 0.0625]),
     "classlabels_int64s": [4, 8]}, count=2)
POSITIONS = {"nodes_featureids": [0, 1], "nodes_splits": f32([0.25, 0.0]), "nodes_modes": u8([0, 3]), "nodes_truenodeids": [1, 1],
             "nodes_trueleafs": [0, 1], "nodes_falsenodeids": [0, 2], "nodes_falseleafs": [1, 1], "tree_roots": [0],
             "leaf_targetids": [0, 1, 1], "leaf_weights": f32([1.5, -2.0, 0.75]), "n_targets": 2}
case("treeensemble", "TreeEnsemble", 5, [X], POSITIONS)
case("treeensemble_member", "TreeEnsemble", 5, [f32([[1, 0], [2, 1], [3, -1], [4, 1]])], {**POSITIONS, "nodes_modes": u8([6, 3]),
     "membership_values": f32([1, 4, NAN])}, [f32([[0, 0.75], [1.5, 0], [1.5, 0], [0, -2]])],
     spec="TreeEnsemble: BRANCH_MEMBER is true for the members of its set")
case("treeensemble_softmax", "TreeEnsemble", 5, [f32([[1, 0, 0], [0, 1, 0]])], {**POSITIONS, "post_transform": 1},
     [f32(np.array([[np.exp(1.5), 1], [1, np.exp(-2.0)]]) / np.array([[np.exp(1.5) + 1], [1 + np.exp(-2.0)]]))],
     spec="TreeEnsemble: post_transform 1 is SOFTMAX", wrong={EVALUATOR: "leaves the transform out", ORT: "has LOGISTIC as 1"})
