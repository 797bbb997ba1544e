// SPDX-License-Identifier: Apache-2.0
// Viewer: everything the graphical program knows apart from pixels. Windows draw it, keys and scripts command it, tests
// ask it; it needs no window.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gui/viewmodel/document_job.h"
#include "gui/viewmodel/inspect/view_inspector.h"
#include "gui/viewmodel/run_form.h"
#include "gui/viewmodel/two_models/view_two_models.h"
#include "gui/viewmodel/view_graph.h"
#include "gui/viewmodel/view_table.h"
#include "gui/viewmodel/view_tensor.h"
#include "gui/viewmodel/view_texts.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {

enum class Preset : uint8_t { all, graph, tensor, table };
enum class LeftTab : uint8_t { alerts, table, causes, marks, explained, runs, differences };

enum class TensorTab : uint8_t { worst, values, channels, around };

// The selected value with its elements.
struct TensorPane {
  std::optional<TensorModel> model;
  std::optional<TextLines> texts;  // of what is no tensor of numbers
  std::string problem;             // why there is neither: "not captured", ...
  WeightFigures weight;            // of a model's weight
  TensorMode mode = TensorMode::absolute;
  TensorMode wanted_mode = TensorMode::absolute;  // where both sides are there
  bool is_one_by_one = false;  // both are there, but cannot be laid over each other: mode says which one is shown
  bool is_split = false;       // A, B and the measure side by side
  bool is_montage = false;
  bool is_auto_range = true;
  bool is_range_due = false;  // to be fitted by who computes the slice's figures: it is too large to wait for
  bool wants_worst = false;   // likewise, the worst element is to be picked
  ValueRange range;
  ElementFilter filter;
  TensorTab tab = TensorTab::worst;
  int channel_axis = -1;  // of the figures by channel; -1: the one before the axes shown
  bool hex = false;
  bool linear_counts = false;  // of the histogram
  bool flips_axis = false;     // of the histogram: logarithmic where it is linear otherwise, and linear where not
  std::vector<std::string> axis_names;  // the model's names of sizes, "batch"; empty where an axis has none
  // Histogram and lists count the whole value, or the slice that is shown. Until somebody chooses, it is the whole
  // of a model's weight and the slice of all else.
  std::optional<bool> chosen_whole;
  bool counts_whole() const { return chosen_whole.value_or(weight.statistics || weight.statistics_b); }
  // Only where there is a model.
  TensorModel counted() const { return counts_whole() ? model->as_one_slice() : *model; }
  // The picked element; -1: none.
  int64_t element = -1;
  int64_t version = 0;        // counts changes of which elements are shown, and as what
  int64_t range_version = 0;  // of the range their colors span
};

bool can_show(const TensorPane& pane, TensorMode mode);

// A copy of a dump's value; none where there is no entry, or the value did not exist. Errors: usage, where its elements
// were not kept; those of load_copy.
Result<Value> captured_value(const DumpReader* dump, int32_t entry);

// The parts of the view that can be exported, and the endings of files that it is written to.
enum class ExportSubject : uint8_t { graph, value, window, view };
struct ExportSubjectInfo {
  ExportSubject subject;
  const char* name;
  std::array<std::string_view, 3> endings;
  const char* meaning;
};
inline constexpr std::array<ExportSubjectInfo, 4> kExportSubjects = {
    {{ExportSubject::graph,
      "the graph",
      {".svg", ".png", ".dot"},
      "all of it, groups as they are; .png what is in sight"},
     {ExportSubject::value, "the value", {".npy", ".csv", ".png"}, "all elements; .csv the slice; .png the pane"},
     {ExportSubject::window, "the window", {".png"}, "as it is"},
     {ExportSubject::view, "the view", {".json"}, "files, selection and bookmarks, for --state"}}};
inline const ExportSubjectInfo& info_of(ExportSubject subject) { return kExportSubjects[static_cast<size_t>(subject)]; }
// The first subject that such a file can hold; the graph where none can.
ExportSubject subject_of(std::string_view path);

// One of several runs that are compared with one baseline. Its document is kept, so that going back takes no time.
struct OtherRun {
  std::string file;
  std::shared_ptr<const Document> document;  // null until it has been compared
  bool is_settled = false;                   // the search for its causes has ended, or it cannot be opened
};

constexpr char kRecentSeparator = '\t';

class Viewer {
 public:
  explicit Viewer(ExecutorFactory make_executor = {});
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;
  ~Viewer();  // removes what runs have left

  // ---- files and jobs; poll() brings what they made
  // A single folder with the two dumps of a run counts as those. Of more than two dumps the first is the baseline of
  // all others: the second is shown next to it, and the others are compared after that.
  void open(std::vector<std::string> files);
  const std::vector<OtherRun>& other_runs() const { return runs_; }  // empty where there is one pair, or less
  int shown_run() const { return shown_run_; }
  bool choose_run(int index);       // the same value stays selected
  void close();                     // back to the start
  Status run(const RunForm& form);  // errors: usage, of the form; io
  void reload();
  bool poll();  // true when something new is shown
  bool is_busy() const { return job_ != nullptr; }
  bool was_touched() const { return was_touched_; }
  bool is_running() const;  // a model: the comparison grows
  // True where the shown run was cancelled or failed: nothing is known of the values after it.
  bool was_cut_short() const { return was_cut_short_; }
  const DocumentJob* job() const { return job_.get(); }
  void cancel_job();
  void measure_times();           // of every node, for colors
  void set_color_by(ColorBy by);  // measures what is not known yet
  void wait_idle();               // until no job is left
  void show(std::shared_ptr<const Document> document);
  const Document* document() const { return document_.get(); }
  std::function<void()> wake;                                // called from the job's thread
  std::function<void(std::span<const std::string>)> opened;  // for recent files

  // ---- selection
  int32_t item() const { return item_; }
  int32_t row() const { return row_; }
  bool select_row(int32_t row);    // false for a row that is not there
  bool select_item(int32_t item);  // and its worst value; of a block or a call its first output, of the model none
  bool select_path(const std::string& path);
  void select_element(int64_t element);
  int alert_at() const;  // of the row selected; -1
  bool step_alert(int step);
  bool step_row(int step);
  bool step_iteration(int step);
  void set_iteration(int64_t iteration);  // of the graph's colors; what is selected follows. -1: all
  bool go(int step);                      // through what was selected before
  void toggle_bookmark();
  const std::vector<int32_t>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(const std::vector<std::string>& paths);  // of values; those that are gone are left out
  const InspectorView& inspector() const;

  // ---- two models: B's graph next to A's. The item above is A's, and -1 where B alone has what is selected.
  GraphView graph_b;
  const TwoModels* models() const { return document_ == nullptr ? nullptr : document_->models.get(); }
  int32_t item_b() const { return item_b_; }
  bool select_item_b(int32_t item);  // and its counterpart in A
  bool select_path_in_b(const std::string& path);
  bool select_difference(int index);  // of TwoModels::differences; brings both sides into sight
  int difference_at() const;          // of what is selected; -1
  bool step_difference(int step);     // in the order of the list
  // True where steps go through what differs between the models: they were not run, or that list is shown.
  bool walks_differences() const;
  GraphView& active_graph() { return is_b_active_ ? graph_b : graph; }  // the one in which something was selected last
  int32_t active_item() const { return is_b_active_ ? item_b_ : item_; }
  bool select_active(int32_t item) { return is_b_active_ ? select_item_b(item) : select_item(item); }
  // Opens or closes a group of `shown`, one of the two, and its counterpart in the other.
  void set_open(GraphView& shown, int32_t item, bool open, bool recursive = false);

  // ---- lists
  const std::vector<Alert>& alerts() const { return alerts_; }
  const std::vector<int32_t>& explained() const { return explained_; }  // rows, as of explained_rows()
  const std::vector<int32_t>& table_rows() const { return table_rows_; }
  void set_table_order(TableOrder order);
  const std::string& search() const { return search_; }
  void set_search(std::string text);
  const std::string& search_problem() const { return search_problem_; }
  bool step_hit(int step);                             // through what the search found, as it is listed
  bool is_hit(int32_t item, bool in_b = false) const;  // of the search, or a group around one

  // ---- tensor
  TensorPane& tensor() { return tensor_; }
  const TensorPane& tensor() const { return tensor_; }
  int64_t tensor_loads() const { return tensor_loads_; }  // counts the values that were selected
  void set_tensor_mode(TensorMode mode);
  void set_montage(bool is_on);
  void show_channel(int axis, int64_t index);       // in the picture
  void set_brush(std::optional<ValueRange> brush);  // only elements within count
  Status go_to_index(const std::string& text);      // "0,3,5"
  void refresh_range();
  void set_range(ValueRange range);  // of colors, until it is fitted again
  void worst_element();

  // ---- what windows show
  GraphView graph;
  Preset preset = Preset::all;
  LeftTab left_tab = LeftTab::alerts;
  bool is_dark = true;
  bool show_help = false, show_palette = false, show_open = false, show_run = false, show_export = false,
       show_goto = false, show_replace = false, show_legend = true;
  bool uses_desktop_chooser = false;  // instead of the dialog, where the desktop has one
  bool wheel_zooms = false;           // over the graph; else it moves, and zooms with Ctrl
  bool focus_search = false;          // the search box takes the keyboard with the next frame
  bool wants_quit = false;
  bool tensor_maximized = false;
  RunForm run_form;
  std::vector<std::string> recent;    // paths, two with kRecentSeparator between them where they were opened together
  std::vector<std::string> messages;  // errors, newest last; dismissed one by one
  std::optional<Error> last_error;    // the newest, dismissed or not; a file that opens leaves none
  float text_size = 1;                // a factor of the size that the screen asks for
  std::string version;                // of the program
  std::string note;                   // what a command has done, for the status line
  std::string clipboard;              // what a command wants copied; taken by the window
  std::string wanted_png;             // where a pane is to be drawn to; taken by who draws it
  std::string_view wanted_pane;       // its widget; empty: the whole window
  bool png_may_replace = false;       // what somebody else wrote there
  std::string foreign_file;           // of an export that waits for its answer, while show_replace
  bool may_replace = false;           // --force: no export asks before it replaces a foreign file
  // Writes what is shown, by the file's ending: of the graph .svg and .dot (or .gv), all of it with its groups open and
  // closed as they are; of the value .npy (the side that is shown, whole, or the measure as float64) and .csv (a line
  // for each element of the slice); .json for the view (session_to_json). A .png is drawn with the next frame. Errors:
  // usage (another ending, nothing to export, a file that is shown, or one that Parallax did not write, unless
  // `replaces`), io.
  Status export_to(const std::string& path, ExportSubject subject, bool replaces = false);
  // Exports, and opens the question where a file is there that Parallax did not write. What fails becomes a message.
  void export_or_ask(const std::string& path, ExportSubject subject);
  ExportSubject foreign_subject = ExportSubject::graph;  // of foreign_file
  void fail(const Error& error);
  // Puts a text on the clipboard; the status line says so. False where it is empty.
  bool copy(std::string text);

 private:
  std::vector<std::string> take_runs(std::vector<std::string> files);  // the two to open first
  bool keep_run(const std::shared_ptr<const Document>& document);      // true: it is not the run that is shown
  void survey_next_run();
  Status admit_export(const std::string& path, ExportSubject subject, bool replaces) const;
  Status write_export(const std::string& path, ExportSubject subject);
  void remember();
  void load_tensor();
  int32_t row_to_show(int32_t item) const;
  int32_t changed_constant(int32_t item) const;  // the row of the first; -1
  void show_models();                            // that have just been opened
  void follow_in_b();                            // what is selected in A
  Result<Value> value_in_b(const ValueRow& row) const;
  bool is_weight_in_b(const ValueRow& row) const;
  std::string explain_no_elements() const;
  void refresh_lists();
  void select_first();
  void find_first();

  ExecutorFactory make_executor_;
  bool wants_times_ = false;  // when the job is done
  std::unique_ptr<DocumentJob> job_;
  std::shared_ptr<const Document> document_;
  std::vector<std::string> files_;
  std::vector<OtherRun> runs_;
  int shown_run_ = 0, surveyed_run_ = -1;  // surveyed: compared in the background; -1: none
  int32_t item_ = -1, row_ = -1;
  int32_t item_b_ = -1;
  int difference_ = -1;  // selected from the list; its node may be drawn nowhere
  bool is_b_active_ = false;
  std::vector<std::array<int32_t, 3>> history_;  // item, row and item_b
  size_t history_at_ = 0;
  bool is_walking_ = false;
  bool shows_run_ = false;  // what is shown is of the last run, not of what was open before it
  bool was_cut_short_ = false;
  size_t old_messages_ = 0;  // of what was open before: they go with what is opened now
  bool was_touched_ =
      false;  // the person has selected something: a result that comes later does not move the selection
  std::vector<int32_t> bookmarks_;
  std::vector<Alert> alerts_;
  std::vector<int32_t> explained_;
  std::vector<int32_t> table_rows_;
  TableOrder table_order_;
  std::string search_, search_problem_;
  std::vector<bool> hits_, hits_b_;  // of items
  TensorPane tensor_;
  int64_t tensor_loads_ = 0;
  // The inspector's content, kept from frame to frame, and the selection that it is of.
  mutable InspectorView inspector_;
  mutable std::tuple<const Document*, int64_t, int32_t, int32_t, int32_t> inspected_{};
  std::vector<std::unique_ptr<TemporaryPath>>
      run_folders_;  // of the last two runs: the older one's values may still be shown
};

// ---- commands: one table feeds the keys, the menus, the palette and the help

struct Command {
  std::string_view id;     // "go.next_divergence", for scripts
  std::string_view group;  // "Go"
  std::string_view title;
  std::string_view keys;  // chords separated by blanks: "N", "Ctrl+Shift+E F5"
  bool (*run)(Viewer&);   // false when there was nothing to do
};
std::span<const Command> commands();
std::vector<Command> with_run_commands(std::span<const Command> commands);  // and those that choose among several runs
const Command* find_command(std::string_view id);
const Command* command_for_key(std::string_view chord);  // "Shift+N"
// The reason why the command has nothing to do now, for menus and the status line; "" where it has.
std::string obstacle_to(const Viewer& viewer, const Command& command);
// Commands whose title or group holds all words, best first.
std::vector<const Command*> find_commands(std::string_view words);

// ---- the view as JSON: what --state reads and --state-out writes

struct NamedRectangle {
  std::string name;
  float x = 0, y = 0;
};
// Everything that is shown: document, selection, lists, inspector, tensor; and where widgets are, if they are known.
std::string view_to_json(Viewer& viewer, std::span<const NamedRectangle> locations = {});
// A person's own part of the view, to be applied the next time that the same files are open: files (absolute),
// selection, bookmarks, open groups, colors, search, and where the graph is looked at. Only keys of apply_view.
std::string session_to_json(const Viewer& viewer);
// Applies it; without what was selected and where the graph was looked at unless `looks_there`. Errors: as of
// apply_view.
Status apply_session(Viewer& viewer, const std::string& json, bool looks_there);
// The files that a view's JSON names; none where it names none, or is no JSON.
std::vector<std::string> files_of_view(const std::string& json);
// The command that shows the same value in the same way again; empty where nothing is open.
std::string view_command(Viewer& viewer);
// Applies the keys that are there: "select", "colour_by", "search", "preset", "theme", "tab", "open", "mode", "slice",
// "element", "zoom", ... Errors: usage, naming the key.
Status apply_view(Viewer& viewer, const std::string& json);
// Checks that the view's JSON holds `value` (JSON, or plain text) at a JSON pointer: "/selection/node". Errors: usage,
// saying what is there instead.
Status expect_view(Viewer& viewer, const std::string& pointer, const std::string& value);

}  // namespace parallax
