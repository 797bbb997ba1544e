// SPDX-License-Identifier: Apache-2.0
// The cost of a frame on the CPU: windows, graph and lists of a large model, everything open. With an argument WRITE
// FILE: the model that gui_bench.py opens.
#include <filesystem>
#include <string_view>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include "gui/panels/panels.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "tests/bench/scoped_transformer.h"

namespace parallax::gui {
namespace {

class Frames {
 public:
  Frames() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {2560, 2880};  // high enough for 2,000 nodes of a long graph
    io.DeltaTime = 1.0F / 60;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as OpenGL's
    io.MousePos = {1400, 700};  // over the graph: what the mouse is on is looked for, too
    ui.viewer = &viewer;
    ui.fonts = bake_fonts(1);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  explicit Frames(int blocks) : Frames() {
    auto document = std::make_shared<Document>();
    document->files = {"transformer"};
    const auto shown = document_of_run(scoped_transformer(blocks), nullptr, {});
    viewer.show(*shown);
    viewer.preset = Preset::graph;
    for (int i = 0; i < 3; ++i) draw();
  }
  ~Frames() { ImGui::DestroyContext(); }

  void draw() {
    begin_frame(ui);
    draw_frame(ui);
    ImGui::Render();
  }

  Viewer viewer{make_executor};
  Ui ui;
};

// The whole graph in sight, or as much of it as can be read.
void frame(benchmark::State& state) {
  Frames frames(static_cast<int>(state.range(0)));
  GraphView& graph = frames.viewer.graph;
  graph.open_all(-1);
  const Scene& scene = graph.scene();
  if (state.range(1) == 0) {
    graph.camera.zoom =
        std::max(kLeastZoom, std::min(graph.canvas_width / scene.width, graph.canvas_height / scene.height));
    graph.camera.x = scene.width / 2 - graph.canvas_width / graph.camera.zoom / 2;
    graph.camera.y = 0;
  }
  int64_t nodes = 0;
  for (const SceneBox& box : scene.boxes) {
    const float y = (box.y - graph.camera.y) * graph.camera.zoom;
    nodes += !box.is_open && y + box.height * graph.camera.zoom > 0 && y < graph.canvas_height;
  }
  for (auto _ : state) frames.draw();
  state.counters["visible_nodes"] = static_cast<double>(nodes);
  state.counters["vertices"] = ImGui::GetDrawData()->TotalVtxCount;
}
BENCHMARK(frame)->Args({38, 0})->Args({38, 1})->Args({50, 0})->Args({50, 1})->Args({150, 0})->Unit(
    benchmark::kMillisecond);

// From the start to the triangles of the first picture: fonts, the model's file, lists, layout, all panes.
void first_frame(benchmark::State& state) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("parallax-first-frame-{}.onnx", ::getpid())).string();
  if (!export_model(*scoped_transformer(static_cast<int>(state.range(0))), path).ok())
    return state.SkipWithError("the model cannot be written");
  int64_t nodes = 0;
  for (auto _ : state) {
    Frames frames;
    frames.viewer.open({path});
    frames.viewer.wait_idle();
    frames.draw();
    nodes = frames.viewer.graph.items().item(0).node_count;
  }
  std::filesystem::remove(path);
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(first_frame)->Arg(39)->Arg(725)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parallax::gui

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "WRITE") {
    const int blocks = std::atoi(argv[2]);
    return parallax::export_model(*parallax::scoped_transformer(blocks), argv[3]).ok() ? 0 : 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
