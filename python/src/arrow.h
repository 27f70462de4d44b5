// Tables by the Arrow C data interface, which pyarrow, polars, pandas and duckdb read without knowing of Culprit: the
// columns stay where they are, and live as long as somebody reads them. The structures are those of the interface's
// specification (arrow.apache.org/docs/format/CDataInterface.html), whose layout is fixed.
#pragma once

#include <culprit/events.h>
#include <culprit/table.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace culprit::python {

/// Texts that come again, each once: UTF-8 one behind the other.
struct Texts {
  std::vector<std::int32_t> codes;
  std::vector<std::int32_t> offsets{0};
  std::string bytes;
  [[nodiscard]] std::size_t size() const { return offsets.size() - 1; }
  [[nodiscard]] std::string_view at(std::size_t i) const {
    return std::string_view(bytes).substr(static_cast<std::size_t>(offsets[i]),
                                          static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
  }
};

struct ArrowColumn {
  std::string key;
  std::string title;
  std::variant<std::vector<std::int64_t>, std::vector<double>, Texts> values;
  std::vector<std::uint8_t> valid;  ///< bits, from the lowest; empty: all are
  std::int64_t nulls = 0;
  [[nodiscard]] bool is_known(std::size_t row) const {
    return valid.empty() || ((valid[row / 8] >> (row % 8)) & 1U) != 0;
  }
};

struct ArrowTable {
  std::string key;
  std::string title;
  std::vector<std::string> notes;
  std::vector<ArrowColumn> columns;
  std::size_t rows = 0;
};

/// Texts of the library are valid UTF-8, which readers insist on.
ArrowTable arrow_of(Table table);
ArrowTable arrow_of(Frame frame);

/// A stream of one batch; the caller releases it.
void export_stream(std::shared_ptr<const ArrowTable> table, ArrowArrayStream* out);

}  // namespace culprit::python
