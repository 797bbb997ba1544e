// SPDX-License-Identifier: Apache-2.0
// The list of verbs.
#include "inspector/cli/command.h"

namespace parallax::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "run a model on one executor, or on two side by side and compare every value",
     "parallax run samples/cnn/model.onnx --with reference,cpu --dump out", make_run_command},
    {"test", "run ONNX backend-test folders", "parallax test samples --with cpu", make_test_command},
    {"bench", "latency and peak memory of a model", "parallax bench samples/cnn/model.onnx --with cpu",
     make_bench_command},
    {"profile", "time by operator and node, and a trace", "parallax profile samples/cnn/model.onnx --with cpu",
     make_profile_command},
    {"generate", "tokens of a language model: greedy, beams or drawn; two sides compared at each step",
     "parallax generate samples/decoder/model.textproto --prompt-ids 3,1,4 --with reference,cpu",
     make_generate_command},
    {"diff", "compare two dumps, or two models as graphs", "parallax diff out/A-reference.plx out/B-cpu.plx --top 10",
     make_diff_command},
    {"blame", "name the nodes that are to blame for a difference",
     "parallax blame samples/cnn/model.onnx --with reference,cpu", make_blame_command},
    {"show", "text of a model's or a dump's graph, or an operator's signature",
     "parallax show samples/cnn/model.onnx --shapes", make_show_command},
    {"dot", "a graph, or two dumps' differences on it, as dot, SVG or PNG",
     "parallax dot samples/cnn/model.onnx -o cnn.svg", make_dot_command},
    {"tensor", "values of a dump: the list, or one value's elements",
     "parallax tensor out/B-cpu.plx linear --slice 0,: --stats", make_tensor_command},
    {"extract", "a part of a model as a model of its own, with its data as a test_data_set",
     "parallax extract samples/cnn/model.onnx --from max_pool2d --to add -o part", make_extract_command},
    {"reduce", "the smallest part of a model that still fails, with its data",
     "parallax reduce samples/fault_pair/A.onnx --against samples/fault_pair/B.onnx -o small", make_reduce_command},
    {"rewrite", "a model as the fast executor rewrites it", "parallax rewrite samples/cnn/model.onnx -o rewritten.onnx",
     make_rewrite_command},
    {"audit-fp16", "the nodes that must stay in float32 when a model goes to half precision",
     "parallax audit-fp16 samples/cnn/model.onnx --seeds 5 --html audit.html", make_audit_command},
    {"convert", "a model in half precision, with the nodes kept in float32 that are named",
     "parallax convert samples/cnn/model.onnx --to float16 -o cnn16.onnx --verify samples/cnn/test_data_set_0",
     make_convert_command},
    {"merge-decoders", "a decoder's first and later steps as one model, each weight once",
     "parallax merge-decoders samples/decoder/first_step.textproto samples/decoder/model.textproto -o merged.onnx "
     "--verify",
     make_merge_decoders_command},
    {"sweep", "a model on several runtimes and settings, as a table (the Python package's)",
     "parallax sweep samples/cnn/model.onnx", make_sweep_command},
    {"import", "import tensors (.npy, .npz, .safetensors, .pb, .onnx) into a dump",
     "parallax import samples/cnn/test_data_set_0 -o data.plx --model samples/cnn/model.onnx", make_import_command},
    {"export", "export a dump's tensors to .npz, .safetensors, .onnx, .npy or test data",
     "parallax export out/B-cpu.plx -o tensors.npz", make_export_command},
    {"check", "validate a dump or a model", "parallax check out/B-cpu.plx", make_check_command},
    {"repair", "save what is intact of a damaged or unfinished dump", "parallax repair out/B-cpu.plx -o saved.plx",
     make_repair_command},
    {"doctor", "what this machine offers, what is missing, and how to get it", "parallax doctor", make_doctor_command},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace parallax::cli
