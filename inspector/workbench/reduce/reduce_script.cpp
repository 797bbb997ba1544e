// SPDX-License-Identifier: Apache-2.0
// repeat.sh: the finding once more, with Parallax alone and then with onnxruntime.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>

#include "inspector/base/output_file.h"
#include "inspector/workbench/reduce/reduce_criteria.h"

namespace parallax {
namespace {

// {}: the models, as a Python list.
constexpr const char* kOnnxRuntimePart = R"(
python3 - <<'END' || true
import sys
try:
    import numpy, onnx, onnxruntime
    from onnx import numpy_helper
except ImportError as missing:
    sys.exit(f"onnxruntime: not asked, {{missing}}")
import glob

def load(kind):
    values = {{}}
    for path in glob.glob(f"test_data_set_0/{{kind}}_*.pb"):
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        values[tensor.name] = numpy_helper.to_array(tensor)
    return values

for model in {}:
    try:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        known = {{value.name for value in session.get_inputs()}}
        inputs = {{name: value for name, value in load("input").items() if name in known}}
        results = dict(zip(names, session.run(names, inputs)))
    except Exception as problem:
        print(f"onnxruntime: {{model}}: {{problem}}")
        continue
    for name, expected in sorted(load("output").items()):
        if name not in results:
            continue
        given = numpy.asarray(results[name])
        if given.shape != expected.shape or given.dtype.kind not in "fiub":
            print(f"onnxruntime: {{model}}: {{name}} {{given.dtype}}{{list(given.shape)}}, expected {{expected.dtype}}{{list(expected.shape)}}")
            continue
        error = numpy.abs(given.astype("float64") - expected.astype("float64"))
        print(f"onnxruntime: {{model}}: {{name}} is at most {{error.max() if error.size else 0:.6g}} from the expected values")
END
)";

}  // namespace

Status write_program(const std::string& path, const std::string& text) {
  const auto file = PX_TRY(OutputFile::create(path));
  PX_TRY(file->write(text));
  struct stat info {};
  // Whoever may read it may run it.
  const bool is_executable = ::fstat(file->descriptor(), &info) == 0 &&
                             ::fchmod(file->descriptor(), (info.st_mode | (info.st_mode & 0444) >> 2) & 0777) == 0;
  if (!is_executable) return io_error(fmt::format("cannot make '{}' executable: {}", path, std::strerror(errno)));
  return file->finish();
}

std::string repeat_script(const std::string& command, const std::vector<std::string>& models) {
  std::string list;
  for (const std::string& model : models) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", model);
  return fmt::format(
             "#!/bin/sh\n"
             "# Repeats the finding. Exit code: that of the command below, which failed when this was written.\n"
             "case $0 in */*) CDPATH= cd -- \"${{0%/*}}/\" || exit 5 ;; esac\n"
             "parallax=${{PARALLAX:-parallax}}\n"
             "{}\n"
             "code=$?\n",
             command) +
         fmt::format(fmt::runtime(kOnnxRuntimePart), "[" + list + "]") + "exit $code\n";
}

}  // namespace parallax
