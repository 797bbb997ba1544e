// SPDX-License-Identifier: Apache-2.0
// `parallax tensor`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/tensor_view.h"

namespace parallax::cli {
namespace {

class TensorCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILE", file_, "the dump to look into, or a model for its weights")
        ->required()
        ->type_name("F.plx|MODEL");
    app.add_option("PATH", path_, "the value; without it all values are listed");
    app.add_option("--slice", view_.slice, "some elements, as in numpy")->type_name("0,:,3:5");
    app.add_flag("--stats", view_.statistics_only, "statistics only");
    app.add_flag("--histogram", view_.histogram, "counts of elements in 20 bins");
    app.add_option("-o", output_, "write the elements to a file")->type_name("F.npy");
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override { return {{file_}, {output_}, {}, common_.force}; }

  Result<int> execute() override {
    common_.apply();
    if (path_.empty() && (!output_.empty() || !view_.slice.empty()))
      return usage_error("--slice and -o need the PATH of a value");
    if (!output_.empty() && !output_.ends_with(".npy"))
      return usage_error(fmt::format("-o '{}': expected a file ending in .npy", output_));
    const auto dump = PX_TRY(open_values(file_));
    if (path_.empty()) {
      print(common_.json ? value_list_to_json(*dump) + "\n" : value_list_to_text(*dump));
      return 0;
    }
    const int32_t entry = PX_TRY(find_entry(*dump, path_));
    if (!output_.empty()) {
      const Tensor selected = PX_TRY(selected_tensor(*dump, entry, view_.slice));
      PX_TRY(write_npy(output_, selected));
      log_info(fmt::format("wrote {}", output_));
      if (!common_.json && !view_.statistics_only && !view_.histogram) return 0;
    }
    print(common_.json ? PX_TRY(tensor_to_json(*dump, entry, view_)) + "\n"
                       : PX_TRY(tensor_to_text(*dump, entry, view_)));
    return 0;
  }

 private:
  std::string file_, path_, output_;
  TensorViewOptions view_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_tensor_command() { return std::make_unique<TensorCommand>(); }

}  // namespace parallax::cli
