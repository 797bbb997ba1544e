// SPDX-License-Identifier: Apache-2.0
// The one list of operators the reference runs: name, domain, first and last since-version, function. A version that is
// not listed is unsupported until someone has read what it changed.
#include "reference/ops/table.h"

#include "inspector/model/opset/op_schema.h"
#include "reference/ops/ops.h"

namespace parallax::reference {
namespace {

constexpr std::string_view kOnnx = "ai.onnx";
constexpr std::string_view kPreview = "ai.onnx.preview";
constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr std::string_view kMl = "ai.onnx.ml";
constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    // unary.cpp: one input, element by element
    {"Abs", kOnnx, 1, 13, op_abs},
    {"Acos", kOnnx, 7, 22, op_acos},
    {"Acosh", kOnnx, 9, 22, op_acosh},
    {"Asin", kOnnx, 7, 22, op_asin},
    {"Asinh", kOnnx, 9, 22, op_asinh},
    {"Atan", kOnnx, 7, 22, op_atan},
    {"Atanh", kOnnx, 9, 22, op_atanh},
    {"BitwiseNot", kOnnx, 18, 18, op_bitwise_not},
    {"Ceil", kOnnx, 1, 13, op_ceil},
    {"Cos", kOnnx, 7, 22, op_cos},
    {"Cosh", kOnnx, 9, 22, op_cosh},
    {"Erf", kOnnx, 9, 13, op_erf},
    {"Exp", kOnnx, 1, 13, op_exp},
    {"Floor", kOnnx, 1, 13, op_floor},
    {"IsInf", kOnnx, 10, 20, op_is_inf},
    {"IsNaN", kOnnx, 9, 20, op_is_nan},
    {"Log", kOnnx, 1, 13, op_log},
    {"Neg", kOnnx, 1, 13, op_neg},
    {"Not", kOnnx, 1, 1, op_not},
    {"Reciprocal", kOnnx, 1, 13, op_reciprocal},
    {"Round", kOnnx, 11, 22, op_round},
    {"Sign", kOnnx, 9, 13, op_sign},
    {"Sin", kOnnx, 7, 22, op_sin},
    {"Sinh", kOnnx, 9, 22, op_sinh},
    {"Sqrt", kOnnx, 1, 13, op_sqrt},
    {"Tan", kOnnx, 7, 22, op_tan},
    {"Tanh", kOnnx, 1, 13, op_tanh},
    // activations.cpp
    {"Celu", kOnnx, 12, 28, op_celu},
    {"Clip", kOnnx, 1, 13, op_clip},
    {"Elu", kOnnx, 1, 22, op_elu},
    {"Gelu", kOnnx, 20, 20, op_gelu},
    {"HardSigmoid", kOnnx, 1, 22, op_hard_sigmoid},
    {"HardSwish", kOnnx, 14, 22, op_hard_swish},
    {"LeakyRelu", kOnnx, 1, 16, op_leaky_relu},
    {"Mish", kOnnx, 18, 22, op_mish},
    {"PRelu", kOnnx, 1, 16, op_prelu},
    {"Relu", kOnnx, 1, 14, op_relu},
    {"Selu", kOnnx, 1, 22, op_selu},
    {"Shrink", kOnnx, 9, 9, op_shrink},
    {"Sigmoid", kOnnx, 1, 13, op_sigmoid},
    {"Softplus", kOnnx, 1, 22, op_softplus},
    {"Softsign", kOnnx, 1, 22, op_softsign},
    {"SwiGLU", kOnnx, 28, 28, op_swiglu},
    {"Swish", kOnnx, 24, 24, op_swish},
    {"ThresholdedRelu", kOnnx, 10, 22, op_thresholded_relu},
    // binary.cpp: two broadcast inputs
    {"Add", kOnnx, 1, 14, op_add},
    {"And", kOnnx, 1, 7, op_and},
    {"BitShift", kOnnx, 11, 28, op_bit_shift},
    {"BitwiseAnd", kOnnx, 18, 18, op_bitwise_and},
    {"BitwiseOr", kOnnx, 18, 18, op_bitwise_or},
    {"BitwiseXor", kOnnx, 18, 18, op_bitwise_xor},
    {"Div", kOnnx, 1, 14, op_div},
    {"Equal", kOnnx, 1, 19, op_equal},
    {"Greater", kOnnx, 1, 13, op_greater},
    {"GreaterOrEqual", kOnnx, 12, 16, op_greater_or_equal},
    {"Less", kOnnx, 1, 13, op_less},
    {"LessOrEqual", kOnnx, 12, 16, op_less_or_equal},
    {"Mod", kOnnx, 10, 13, op_mod_13},
    {"Mod", kOnnx, 28, 28, op_mod},
    {"Mul", kOnnx, 1, 14, op_mul},
    {"Or", kOnnx, 1, 7, op_or},
    {"Pow", kOnnx, 1, 15, op_pow},
    {"Sub", kOnnx, 1, 14, op_sub},
    {"Xor", kOnnx, 1, 7, op_xor},
    // variadic.cpp: any number of broadcast inputs
    {"Max", kOnnx, 1, 13, op_max},
    {"Mean", kOnnx, 1, 13, op_mean},
    {"Min", kOnnx, 1, 13, op_min},
    {"Sum", kOnnx, 1, 13, op_sum},
    // cast.cpp
    {"BitCast", kOnnx, 26, 26, op_bit_cast},
    {"Cast", kOnnx, 1, 28, op_cast},
    {"CastLike", kOnnx, 15, 25, op_cast_like},
    // shape_ops.cpp: shapes, and elements made from them
    {"Constant", kOnnx, 1, 25, op_constant},
    {"ConstantOfShape", kOnnx, 9, 25, op_constant_of_shape},
    {"Expand", kOnnx, 8, 13, op_expand},
    {"EyeLike", kOnnx, 9, 22, op_eye_like},
    {"Flatten", kOnnx, 1, 25, op_flatten},
    {"Identity", kOnnx, 1, 25, op_identity},
    {"Range", kOnnx, 11, 27, op_range},
    {"Reshape", kOnnx, 1, 25, op_reshape},
    {"Shape", kOnnx, 1, 25, op_shape},
    {"Size", kOnnx, 1, 25, op_size},
    {"Squeeze", kOnnx, 1, 25, op_squeeze},
    {"Unsqueeze", kOnnx, 1, 25, op_unsqueeze},
    // movement.cpp: elements placed elsewhere
    {"Concat", kOnnx, 1, 13, op_concat},
    {"Slice", kOnnx, 1, 13, op_slice},
    {"Split", kOnnx, 1, 18, op_split},
    {"Tile", kOnnx, 1, 1, op_tile_1},
    {"Tile", kOnnx, 6, 13, op_tile},
    {"Transpose", kOnnx, 1, 25, op_transpose},
    {"Trilu", kOnnx, 14, 14, op_trilu},
    {"Where", kOnnx, 9, 16, op_where},
    // gather.cpp: elements chosen by indices
    {"Gather", kOnnx, 1, 13, op_gather},
    {"GatherElements", kOnnx, 11, 13, op_gather_elements},
    {"GatherND", kOnnx, 11, 13, op_gather_nd},
    // reduce.cpp
    {"ReduceL1", kOnnx, 1, 18, op_reduce_l1},
    {"ReduceL2", kOnnx, 1, 18, op_reduce_l2},
    {"ReduceLogSum", kOnnx, 1, 28, op_reduce_log_sum},
    {"ReduceLogSumExp", kOnnx, 1, 28, op_reduce_log_sum_exp},
    {"ReduceMax", kOnnx, 1, 20, op_reduce_max},
    {"ReduceMean", kOnnx, 1, 18, op_reduce_mean},
    {"ReduceMin", kOnnx, 1, 20, op_reduce_min},
    {"ReduceProd", kOnnx, 1, 18, op_reduce_prod},
    {"ReduceSum", kOnnx, 1, 13, op_reduce_sum},
    {"ReduceSumSquare", kOnnx, 1, 18, op_reduce_sum_square},
    // scan_rows.cpp: along one axis
    {"ArgMax", kOnnx, 1, 13, op_arg_max},
    {"ArgMin", kOnnx, 1, 13, op_arg_min},
    {"CumProd", kOnnx, 26, 26, op_cum_prod},
    {"CumSum", kOnnx, 11, 14, op_cum_sum},
    {"TopK", kOnnx, 1, 24, op_top_k},
    // softmax.cpp
    {"Hardmax", kOnnx, 1, 13, op_hardmax},
    {"LogSoftmax", kOnnx, 1, 13, op_log_softmax},
    {"Softmax", kOnnx, 1, 13, op_softmax},
    // normalization.cpp
    {"BatchNormalization", kOnnx, 1, 6, op_batch_normalization_1},
    {"BatchNormalization", kOnnx, 7, 9, op_batch_normalization_7},
    {"BatchNormalization", kOnnx, 14, 15, op_batch_normalization},
    {"GroupNormalization", kOnnx, 18, 21, op_group_normalization},
    {"InstanceNormalization", kOnnx, 1, 22, op_instance_normalization},
    {"LRN", kOnnx, 1, 13, op_lrn},
    {"LayerNormalization", kOnnx, 1, 17, op_layer_normalization},
    {"LpNormalization", kOnnx, 1, 22, op_lp_normalization},
    {"MeanVarianceNormalization", kOnnx, 9, 13, op_mean_variance_normalization},
    {"RMSNormalization", kOnnx, 23, 23, op_rms_normalization},
    // matmul.cpp: matrix products
    {"Gemm", kOnnx, 1, 6, op_gemm_1},
    {"Gemm", kOnnx, 7, 13, op_gemm},
    {"MatMul", kOnnx, 1, 13, op_matmul},
    {"MatMulInteger", kOnnx, 10, 10, op_matmul_integer},
    {"QLinearMatMul", kOnnx, 10, 21, op_qlinear_matmul},
    // quantize.cpp
    {"DequantizeLinear", kOnnx, 10, 28, op_dequantize_linear},
    {"DynamicQuantizeLinear", kOnnx, 11, 11, op_dynamic_quantize_linear},
    {"QuantizeLinear", kOnnx, 10, 28, op_quantize_linear},
    // control_flow.cpp: bodies
    {"If", kOnnx, 1, 25, op_if},
    {"Loop", kOnnx, 1, 25, op_loop},
    {"Scan", kOnnx, 8, 8, op_scan_8},
    {"Scan", kOnnx, 9, 25, op_scan},
    // attention.cpp
    {"Attention", kOnnx, 23, 25, op_attention},
    {"RotaryEmbedding", kOnnx, 23, 23, op_rotary_embedding},
    // flex_attention.cpp
    {"FlexAttention", kPreview, 1, 1, op_flex_attention},
    // conv.cpp
    {"Conv", kOnnx, 1, 22, op_conv},
    {"ConvInteger", kOnnx, 10, 10, op_conv_integer},
    {"ConvTranspose", kOnnx, 1, 22, op_conv_transpose},
    {"QLinearConv", kOnnx, 10, 10, op_qlinear_conv},
    // deform_conv.cpp
    {"DeformConv", kOnnx, 19, 22, op_deform_conv},
    // linear_attention.cpp
    {"CausalConvWithState", kOnnx, 27, 27, op_causal_conv_with_state},
    {"LinearAttention", kOnnx, 27, 27, op_linear_attention},
    // pool.cpp
    {"AveragePool", kOnnx, 1, 22, op_average_pool},
    {"GlobalAveragePool", kOnnx, 1, 22, op_global_average_pool},
    {"GlobalLpPool", kOnnx, 1, 22, op_global_lp_pool},
    {"GlobalMaxPool", kOnnx, 1, 22, op_global_max_pool},
    {"LpPool", kOnnx, 1, 22, op_lp_pool},
    {"MaxPool", kOnnx, 1, 22, op_max_pool},
    {"MaxRoiPool", kOnnx, 1, 22, op_max_roi_pool},
    {"MaxUnpool", kOnnx, 9, 22, op_max_unpool},
    // recurrent.cpp
    {"GRU", kOnnx, 1, 22, op_gru},
    {"LSTM", kOnnx, 1, 22, op_lstm},
    {"RNN", kOnnx, 1, 22, op_rnn},
    // sequence.cpp: sequences and optionals
    {"ConcatFromSequence", kOnnx, 11, 11, op_concat_from_sequence},
    {"Optional", kOnnx, 15, 28, op_optional},
    {"OptionalGetElement", kOnnx, 15, 28, op_optional_get_element},
    {"OptionalHasElement", kOnnx, 15, 28, op_optional_has_element},
    {"SequenceAt", kOnnx, 11, 11, op_sequence_at},
    {"SequenceConstruct", kOnnx, 11, 11, op_sequence_construct},
    {"SequenceEmpty", kOnnx, 11, 11, op_sequence_empty},
    {"SequenceErase", kOnnx, 11, 11, op_sequence_erase},
    {"SequenceInsert", kOnnx, 11, 11, op_sequence_insert},
    {"SequenceLength", kOnnx, 11, 11, op_sequence_length},
    {"SequenceMap", kOnnx, 17, 17, op_sequence_map},
    {"SplitToSequence", kOnnx, 11, 24, op_split_to_sequence},
    // scatter.cpp: elements written at indices
    {"OneHot", kOnnx, 9, 28, op_one_hot},
    {"Scatter", kOnnx, 9, 11, op_scatter_elements},
    {"ScatterElements", kOnnx, 11, 18, op_scatter_elements},
    {"ScatterND", kOnnx, 11, 18, op_scatter_nd},
    {"TensorScatter", kOnnx, 24, 24, op_tensor_scatter},
    // select.cpp: sizes that depend on data, rearrangements
    {"Compress", kOnnx, 9, 28, op_compress},
    {"DepthToSpace", kOnnx, 1, 28, op_depth_to_space},
    {"NonZero", kOnnx, 9, 13, op_non_zero},
    {"Pad", kOnnx, 1, 25, op_pad},
    {"ReverseSequence", kOnnx, 10, 28, op_reverse_sequence},
    {"SpaceToDepth", kOnnx, 1, 28, op_space_to_depth},
    {"Unique", kOnnx, 11, 28, op_unique},
    // random.cpp
    {"Bernoulli", kOnnx, 15, 22, op_bernoulli},
    {"Dropout", kOnnx, 1, 6, op_dropout_1},
    {"Dropout", kOnnx, 7, 10, op_dropout_7},
    {"Dropout", kOnnx, 12, 22, op_dropout},
    {"Multinomial", kOnnx, 7, 22, op_multinomial},
    {"RandomNormal", kOnnx, 1, 22, op_random_normal},
    {"RandomNormalLike", kOnnx, 1, 22, op_random_normal_like},
    {"RandomUniform", kOnnx, 1, 22, op_random_uniform},
    {"RandomUniformLike", kOnnx, 1, 22, op_random_uniform_like},
    // blocks.cpp
    {"CenterCropPad", kOnnx, 18, 18, op_center_crop_pad},
    {"Col2Im", kOnnx, 18, 18, op_col2im},
    // einsum.cpp
    {"Det", kOnnx, 11, 22, op_det},
    {"Einsum", kOnnx, 12, 28, op_einsum},
    // resize.cpp
    {"Resize", kOnnx, 10, 10, op_upsample},
    {"Resize", kOnnx, 11, 19, op_resize},
    {"Upsample", kOnnx, 1, 1, op_upsample_1},
    {"Upsample", kOnnx, 7, 7, op_upsample_7},
    {"Upsample", kOnnx, 9, 10, op_upsample},
    // vision.cpp
    {"AffineGrid", kOnnx, 20, 20, op_affine_grid},
    {"GridSample", kOnnx, 16, 22, op_grid_sample},
    {"NonMaxSuppression", kOnnx, 10, 11, op_non_max_suppression},
    {"RoiAlign", kOnnx, 10, 22, op_roi_align},
    // loss.cpp
    {"NegativeLogLikelihoodLoss", kOnnx, 12, 22, op_negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", kOnnx, 12, 13, op_softmax_cross_entropy_loss},
    // signal.cpp
    {"BlackmanWindow", kOnnx, 17, 17, op_blackman_window},
    {"DFT", kOnnx, 17, 20, op_dft},
    {"HammingWindow", kOnnx, 17, 17, op_hamming_window},
    {"HannWindow", kOnnx, 17, 17, op_hann_window},
    {"MelWeightMatrix", kOnnx, 17, 17, op_mel_weight_matrix},
    {"STFT", kOnnx, 17, 17, op_stft},
    // image_decoder.cpp
    {"ImageDecoder", kOnnx, 20, 20, op_image_decoder},
    // text.cpp
    {"RegexFullMatch", kOnnx, 20, 20, op_regex_full_match},
    {"StringConcat", kOnnx, 20, 20, op_string_concat},
    {"StringNormalizer", kOnnx, 10, 10, op_string_normalizer},
    {"StringSplit", kOnnx, 20, 20, op_string_split},
    {"TfIdfVectorizer", kOnnx, 9, 9, op_tf_idf_vectorizer},
    // training.cpp
    {"Adagrad", kTraining, 1, 1, op_adagrad},
    {"Adam", kTraining, 1, 1, op_adam},
    {"Momentum", kTraining, 1, 1, op_momentum},
    // ml_encoders.cpp
    {"CategoryMapper", kMl, 1, 1, op_ml_category_mapper},
    {"LabelEncoder", kMl, 1, 1, op_ml_label_encoder_1},
    {"LabelEncoder", kMl, 2, 4, op_ml_label_encoder},
    {"OneHotEncoder", kMl, 1, 1, op_ml_one_hot_encoder},
    // ml_features.cpp
    {"ArrayFeatureExtractor", kMl, 1, 1, op_ml_array_feature_extractor},
    {"Binarizer", kMl, 1, 1, op_ml_binarizer},
    {"FeatureVectorizer", kMl, 1, 1, op_ml_feature_vectorizer},
    {"Imputer", kMl, 1, 1, op_ml_imputer},
    {"Normalizer", kMl, 1, 1, op_ml_normalizer},
    {"Scaler", kMl, 1, 1, op_ml_scaler},
    // ml_linear.cpp
    {"LinearClassifier", kMl, 1, 1, op_ml_linear_classifier},
    {"LinearRegressor", kMl, 1, 1, op_ml_linear_regressor},
    // ml_maps.cpp
    {"CastMap", kMl, 1, 1, op_ml_cast_map},
    {"DictVectorizer", kMl, 1, 1, op_ml_dict_vectorizer},
    {"ZipMap", kMl, 1, 1, op_ml_zip_map},
    // ml_svm.cpp
    {"SVMClassifier", kMl, 1, 1, op_ml_svm_classifier},
    {"SVMRegressor", kMl, 1, 1, op_ml_svm_regressor},
    // ml_tree.cpp
    {"TreeEnsemble", kMl, 5, 5, op_ml_tree_ensemble},
    {"TreeEnsembleClassifier", kMl, 1, 5, op_ml_tree_ensemble_classifier},
    {"TreeEnsembleRegressor", kMl, 1, 5, op_ml_tree_ensemble_regressor},
    // ---- com.microsoft ----
    // contrib/activations.cpp
    {"BiasAdd", kMicrosoft, 1, 1, op_contrib_bias_add},
    {"BiasDropout", kMicrosoft, 1, 1, op_contrib_bias_dropout},
    {"BiasGelu", kMicrosoft, 1, 1, op_contrib_bias_gelu},
    {"BiasSoftmax", kMicrosoft, 1, 1, op_contrib_bias_softmax},
    {"BiasSplitGelu", kMicrosoft, 1, 1, op_contrib_bias_split_gelu},
    {"FastGelu", kMicrosoft, 1, 1, op_contrib_fast_gelu},
    {"Gelu", kMicrosoft, 1, 1, op_contrib_gelu},
    {"QuickGelu", kMicrosoft, 1, 1, op_contrib_quick_gelu},
    // contrib/attention.cpp
    {"Attention", kMicrosoft, 1, 1, op_contrib_attention},
    {"DecoderMaskedMultiHeadAttention", kMicrosoft, 1, 1, op_contrib_decoder_masked_multi_head_attention},
    {"MultiHeadAttention", kMicrosoft, 1, 1, op_contrib_multi_head_attention},
    {"QAttention", kMicrosoft, 1, 1, op_contrib_q_attention},
    // contrib/borrowed.cpp
    {"CropAndResize", kMicrosoft, 1, 1, op_contrib_crop_and_resize},
    {"GridSample", kMicrosoft, 1, 1, op_contrib_grid_sample},
    {"Pad", kMicrosoft, 1, 1, op_contrib_pad},
    {"Range", kMicrosoft, 1, 1, op_contrib_range},
    {"ReduceSumInteger", kMicrosoft, 1, 1, op_contrib_reduce_sum_integer},
    {"SampleOp", kMicrosoft, 1, 1, op_contrib_sample_op},
    {"UnfoldTensor", kMicrosoft, 1, 1, op_contrib_unfold_tensor},
    // contrib/experts.cpp
    {"MoE", kMicrosoft, 1, 1, op_contrib_moe},
    // contrib/fused.cpp
    {"ConvTransposeWithDynamicPads", kMicrosoft, 1, 1, op_contrib_conv_transpose_with_dynamic_pads},
    {"FusedConv", kMicrosoft, 1, 1, op_contrib_fused_conv},
    {"FusedGemm", kMicrosoft, 1, 1, op_contrib_fused_gemm},
    {"FusedMatMul", kMicrosoft, 1, 1, op_contrib_fused_matmul},
    {"FusedMatMulActivation", kMicrosoft, 1, 1, op_contrib_fused_matmul_activation},
    {"GemmFastGelu", kMicrosoft, 1, 1, op_contrib_gemm_fast_gelu},
    {"NhwcConv", kMicrosoft, 1, 1, op_contrib_nhwc_conv},
    {"NhwcFusedConv", kMicrosoft, 1, 1, op_contrib_nhwc_conv},
    {"TransposeMatMul", kMicrosoft, 1, 1, op_contrib_fused_matmul},
    // contrib/gated.cpp
    {"BranchwiseRMSNorm", kMicrosoft, 1, 1, op_contrib_branchwise_rms_norm},
    {"GatedAdd", kMicrosoft, 1, 1, op_contrib_gated_add},
    {"GatedRMSNorm", kMicrosoft, 1, 1, op_contrib_gated_rms_norm},
    {"MatMulNBitsMlp", kMicrosoft, 1, 1, op_contrib_matmul_nbits_mlp},
    {"MatMulNBitsQkv", kMicrosoft, 1, 1, op_contrib_matmul_nbits_qkv},
    {"ScaledSiLU", kMicrosoft, 1, 1, op_contrib_scaled_silu},
    // contrib/gather_quantized.cpp
    {"GatherBlockQuantized", kMicrosoft, 1, 1, op_contrib_gather_block_quantized},
    // contrib/group_query_attention.cpp
    {"GroupQueryAttention", kMicrosoft, 1, 1, op_contrib_group_query_attention},
    // contrib/normalization.cpp
    {"EmbedLayerNormalization", kMicrosoft, 1, 1, op_contrib_embed_layer_normalization},
    {"GroupNorm", kMicrosoft, 1, 1, op_contrib_group_norm},
    {"SimplifiedLayerNormalization", kOnnx, 1, 1, op_contrib_simplified_layer_normalization},
    {"SkipGroupNorm", kMicrosoft, 1, 1, op_contrib_skip_group_norm},
    {"SkipLayerNormalization", kMicrosoft, 1, 1, op_contrib_skip_layer_normalization},
    {"SkipSimplifiedLayerNormalization", kMicrosoft, 1, 1, op_contrib_skip_simplified_layer_normalization},
    // contrib/packed.cpp
    {"PackedAttention", kMicrosoft, 1, 1, op_contrib_packed_attention},
    {"PackedMultiHeadAttention", kMicrosoft, 1, 1, op_contrib_packed_multi_head_attention},
    {"RemovePadding", kMicrosoft, 1, 1, op_contrib_remove_padding},
    {"RestorePadding", kMicrosoft, 1, 1, op_contrib_restore_padding},
    // contrib/positions.cpp
    {"GatedRelativePositionBias", kMicrosoft, 1, 1, op_contrib_gated_relative_position_bias},
    {"NGramRepeatBlock", kMicrosoft, 1, 1, op_contrib_ngram_repeat_block},
    {"QEmbedLayerNormalization", kMicrosoft, 1, 1, op_contrib_q_embed_layer_normalization},
    {"RelativePositionBias", kMicrosoft, 1, 1, op_contrib_relative_position_bias},
    // contrib/quantized.cpp
    {"MulInteger", kMicrosoft, 1, 1, op_contrib_mul_integer},
    {"NhwcMaxPool", kMicrosoft, 1, 1, op_contrib_nhwc_max_pool},
    {"QLinearAdd", kMicrosoft, 1, 1, op_contrib_qlinear_add},
    {"QLinearAveragePool", kMicrosoft, 1, 1, op_contrib_qlinear_average_pool},
    {"QLinearConcat", kMicrosoft, 1, 1, op_contrib_qlinear_concat},
    {"QLinearConv", kMicrosoft, 1, 1, op_contrib_qlinear_conv},
    {"QLinearGlobalAveragePool", kMicrosoft, 1, 1, op_contrib_qlinear_global_average_pool},
    {"QLinearLeakyRelu", kMicrosoft, 1, 1, op_contrib_qlinear_leaky_relu},
    {"QLinearMul", kMicrosoft, 1, 1, op_contrib_qlinear_mul},
    {"QLinearReduceMean", kMicrosoft, 1, 1, op_contrib_qlinear_reduce_mean},
    {"QLinearSigmoid", kMicrosoft, 1, 1, op_contrib_qlinear_sigmoid},
    {"QLinearSoftmax", kMicrosoft, 1, 1, op_contrib_qlinear_softmax},
    {"QLinearWhere", kMicrosoft, 1, 1, op_contrib_qlinear_where},
    // contrib/quantized_matmul.cpp
    {"DynamicQuantizeLSTM", kMicrosoft, 1, 1, op_contrib_dynamic_quantize_lstm},
    {"DynamicQuantizeMatMul", kMicrosoft, 1, 1, op_contrib_dynamic_quantize_matmul},
    {"MatMulBnb4", kMicrosoft, 1, 1, op_contrib_matmul_bnb4},
    {"MatMulInteger16", kMicrosoft, 1, 1, op_contrib_matmul_integer16},
    {"MatMulIntegerToFloat", kMicrosoft, 1, 1, op_contrib_matmul_integer_to_float},
    {"MatMulNBits", kMicrosoft, 1, 1, op_contrib_matmul_nbits},
    {"QGemm", kMicrosoft, 1, 1, op_contrib_q_gemm},
    // contrib/rotary.cpp
    {"RotaryEmbedding", kMicrosoft, 1, 1, op_contrib_rotary_embedding},
    // contrib/state.cpp
    {"CausalConvWithState", kMicrosoft, 1, 1, op_contrib_causal_conv_with_state},
    {"LinearAttention", kMicrosoft, 1, 1, op_contrib_linear_attention},
    // contrib/tensors.cpp
    {"CDist", kMicrosoft, 1, 1, op_contrib_cdist},
    {"ComplexMul", kMicrosoft, 1, 1, op_contrib_complex_mul},
    {"ComplexMulConj", kMicrosoft, 1, 1, op_contrib_complex_mul_conj},
    {"ExpandDims", kMicrosoft, 1, 1, op_contrib_expand_dims},
    {"Inverse", kMicrosoft, 1, 1, op_contrib_inverse},
    {"Irfft", kMicrosoft, 1, 1, op_contrib_irfft},
    {"IsAllFinite", kMicrosoft, 1, 1, op_contrib_is_all_finite},
    {"Rfft", kMicrosoft, 1, 1, op_contrib_rfft},
    {"Tokenizer", kMicrosoft, 1, 1, op_contrib_tokenizer},
    {"TorchEmbedding", kMicrosoft, 1, 1, op_contrib_torch_embedding},
    {"Unique", kMicrosoft, 1, 1, op_contrib_unique},
    // those of ai.onnx with the same meaning
    {"DequantizeLinear", kMicrosoft, 1, 1, op_dequantize_linear},
    {"GatherND", kMicrosoft, 1, 1, op_gather_nd},
    {"QuantizeLinear", kMicrosoft, 1, 1, op_quantize_linear},
    {"Trilu", kMicrosoft, 1, 1, op_trilu},
};

}  // namespace

std::span<const OpRow> op_rows() { return kRows; }

const OpRow* find_row(const Node& node) {
  for (const OpRow& row : kRows) {
    if (row.op != node.schema->name || row.domain != node.schema->domain) continue;
    if (node.schema->since_version >= row.first_version && node.schema->since_version <= row.last_version) return &row;
  }
  return nullptr;
}

}  // namespace parallax::reference
