// SPDX-License-Identifier: Apache-2.0
// Fuser: a graph being edited as patterns see it: who makes a value, who reads it, and the one way to replace several
// nodes by one. A replacement that would lose a value somebody else reads is refused.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "inspector/model/make_attribute.h"
#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

inline constexpr std::string_view kMicrosoft = "com.microsoft";

// The positions of the nodes that read one value, once for each read.
class Readers {
 public:
  struct Read {
    size_t position = 0;
    ValueId value = kNoValue;
    int32_t next = -1, previous = -1;  // of the same value
  };

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const size_t*;
    using reference = size_t;

    Iterator() = default;
    Iterator(const std::vector<Read>* reads, int32_t at) : reads_(reads), at_(at) {}
    size_t operator*() const { return (*reads_)[static_cast<size_t>(at_)].position; }
    Iterator& operator++() {
      at_ = (*reads_)[static_cast<size_t>(at_)].next;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::vector<Read>* reads_ = nullptr;
    int32_t at_ = -1;
  };

  Readers(const std::vector<Read>& reads, int32_t first) : reads_(&reads), first_(first) {}
  Iterator begin() const { return {reads_, first_}; }
  Iterator end() const { return {reads_, -1}; }
  bool empty() const { return first_ < 0; }

 private:
  const std::vector<Read>* reads_;
  int32_t first_;
};

class Fuser {
 public:
  static constexpr size_t kNowhere = SIZE_MAX;

  explicit Fuser(GraphEdit& edit);
  Fuser(const Fuser&) = delete;
  Fuser& operator=(const Fuser&) = delete;
  ~Fuser();  // drops the nodes that were replaced

  GraphEdit& edit() { return edit_; }
  const GraphEdit& edit() const { return edit_; }

  // ---- Nodes by position, in execution order; null once replaced ----
  size_t count() const { return nodes_.size(); }
  const Node* at(size_t position) const { return nodes_[position].node; }
  // The node at `position` when it is this operator of the standard and has one output in use.
  const Node* at(size_t position, std::string_view op) const;

  // ---- Values ----
  ValueId input(const Node& node, size_t index) const;  // aliases resolved; kNoValue when omitted
  size_t producer(ValueId value) const;                 // position, or kNowhere
  size_t producer(ValueId value, std::string_view op) const;
  Readers readers(ValueId value) const { return {reads_, first_read_[static_cast<size_t>(value)]}; }
  // The only node that reads it; kNowhere when there are several, or when it is an output, overridden or captured.
  size_t only_reader(ValueId value) const;
  bool is_private(ValueId value) const { return only_reader(value) != kNowhere; }
  // Known to be the very same on every run: the only element, or all of it.
  std::optional<double> scalar(ValueId value) const;
  DType dtype_of(ValueId value) const;
  std::optional<std::vector<Dim>> dims_of(ValueId value) const;

  // ---- Changes ----
  // A node of the given operator; its schema is looked up, its name made from those it stands for.
  Node make(std::string_view domain, std::string_view op, size_t location, std::vector<ValueId> inputs,
            std::vector<ValueId> outputs) const;
  // Puts `made` at position `location`, one of `members`, and takes all members out. What they made and `made` does not
  // is announced as fused into it. False, and nothing is changed, when such a value is needed elsewhere, when an input
  // of `made` is not there yet at `location`, or when its operator is beyond the edit's limit.
  bool replace(std::span<const size_t> members, size_t location, Node made);
  // Takes out a node whose outputs nothing needs any more; each is announced as `kind`.
  void remove(size_t position, ValueAbsence::Kind kind);
  // Takes out a node; readers of its only output read `target` instead.
  bool alias(size_t position, ValueId target);

 private:
  void forget(size_t position);
  void note(size_t position);
  void link(int32_t read, ValueId value);
  void unlink(int32_t read);
  bool is_free(ValueId value, std::span<const size_t> members) const;
  const std::vector<size_t>& fused_absences(NodeId maker);

  GraphEdit& edit_;
  std::vector<PlannedNode>& nodes_;
  std::vector<size_t> producers_;  // by ValueId
  // Reads of one value are linked, so that one is taken out in the same time however many there are; those of one node
  // stand together.
  std::vector<Readers::Read> reads_;
  std::vector<int32_t> first_read_;            // by ValueId; -1: none
  std::vector<int32_t> reads_of_node_;         // by position: the first; as many as the node has inputs
  std::vector<std::vector<size_t>> absences_;  // by the NodeId of the maker: indices of the values that were fused
  size_t indexed_absences_ = 0;
};

// Calls fuse(fuser, position) for every node, in execution order.
template <class Fuse>
void fuse_each(GraphEdit& edit, const Fuse& fuse) {
  Fuser fuser(edit);
  for (size_t position = 0; position < fuser.count(); ++position) fuse(fuser, position);
}

// ---- Attributes ----

// The attribute's value, the schema's default, or `otherwise`.
int64_t int_of(const Node& node, std::string_view name, int64_t otherwise);
double float_of(const Node& node, std::string_view name, double otherwise);
std::string text_of(const Node& node, std::string_view name, std::string otherwise);
std::optional<std::vector<int64_t>> ints_of(const Node& node, std::string_view name);

bool is_standard(const Node& node);
bool is_near(double value, double wanted, DType dtype);  // equal but for the rounding of a constant stored as `dtype`

}  // namespace parallax::runtime
