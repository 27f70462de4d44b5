#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "core/hash.h"
#include "deepdive/csv_names.h"
#include "deepdive/perf_columns.h"
#include "deepdive/perf_csv.h"
#include "formats/io/csv_rows.h"
#include "formats/io/missing_text.h"

namespace culprit::deepdive {

namespace {

struct CycleKey {
  std::int64_t number;
  StringId anchor;
  std::uint64_t begin;  // bits of the reported numbers: NaN equals NaN
  std::uint64_t duration;
  bool operator==(const CycleKey&) const = default;
};
struct UseRow {
  std::uint32_t cycle;
  std::uint32_t process;
  StringId function;
  StringId device;
  StringId kind;
  StringId short_name;
  std::int64_t count;
  std::uint64_t beta;
  std::uint64_t duration;
  bool operator==(const UseRow&) const = default;
};
struct ProcessKey {
  std::int64_t pid;
  StringId host;
  bool operator==(const ProcessKey&) const = default;
};
struct KeyHash {
  std::size_t operator()(const CycleKey& k) const { return hash_parts(k.number, k.anchor, k.begin, k.duration); }
  std::size_t operator()(const UseRow& k) const {
    return hash_parts(k.cycle, k.process, k.function, k.device, k.kind, k.short_name, k.count, k.beta, k.duration);
  }
  std::size_t operator()(const ProcessKey& k) const { return hash_parts(k.pid, k.host); }
};

/// Index of `key` in `rows`, appending what `make` gives when it is new.
template <class Key, class Row, class Make>
std::uint32_t index_of(tsl::hopscotch_map<Key, std::uint32_t, KeyHash>& known, std::vector<Row>& rows, const Key& key,
                       const Make& make) {
  const auto [found, added] = known.try_emplace(key, static_cast<std::uint32_t>(rows.size()));
  if (added) rows.push_back(make());
  return found->second;
}

class Reader {
 public:
  Reader(std::string_view file, const PerfCsvOptions& options) : options_(options) { profile_.input.file = file; }

  void row(std::span<const std::string_view> fields, std::uint64_t line) {
    if (!have_header_) {
      read_header(fields);
      return;
    }
    if (fields.size() != width_) {
      bad_row(line, fmt::format("the row has {} columns instead of {}", fields.size(), width_),
              "look for an unquoted comma or a cut line");
      return;
    }
    fields_ = fields;
    line_ = line;
    read_row();
  }

  void bad_row(std::uint64_t line, std::string what, std::string remedy) {
    ++profile_.input.bad_rows;
    describe(line, std::move(what), std::move(remedy));
  }

  Result<Profile> finish() {
    const std::string& file = profile_.input.file;
    if (!have_header_)
      return input_error("is empty; a profile table begins with a header line", file, "give a *_perf_data.csv file");
    std::string missing;
    bool none = true;
    for (const PerfColumnInfo& column : kPerfColumns) {
      if (!column.required) continue;
      if (at_[index(column.id)] == kAbsent)
        missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", column.name);
      else
        none = false;
    }
    if (none)
      return input_error("unrecognized CSV: it has no column of a profile table", file,
                         "give traces, or tables of DeepDive (*_perf_data.csv); Nsight Compute CSV is compared by: "
                         "culprit kernels --vs");
    if (!missing.empty())
      return input_error(fmt::format("is no profile table: no column {}", missing), file,
                         "give a *_perf_data.csv file, with its header line");
    return std::move(profile_);
  }

 private:
  static std::size_t index(PerfColumn column) { return static_cast<std::size_t>(column); }

  void read_header(std::span<const std::string_view> fields) {
    have_header_ = true;
    width_ = fields.size();
    at_.fill(kAbsent);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      bool known = false;
      for (const PerfColumnInfo& column : kPerfColumns) {
        if (column.name != fields[i] || at_[index(column.id)] != kAbsent) continue;
        at_[index(column.id)] = i;
        known = true;
      }
      if (!known && profile_.input.unknown_columns.size() < options_.most_damage)
        profile_.input.unknown_columns.emplace_back(fields[i].substr(0, 200));
    }
  }

  void describe(std::uint64_t line, std::string what, std::string remedy) {
    if (profile_.input.first.size() < options_.most_damage)
      profile_.input.first.push_back({line, std::move(what), std::move(remedy)});
  }

  std::string_view cell(PerfColumn column) const {
    const std::size_t at = at_[index(column)];
    return at == kAbsent ? std::string_view() : fields_[at];
  }
  StringId name(PerfColumn column) { return profile_.texts.intern(unguard_name(cell(column))); }

  void bad_cell_row(PerfColumn column, std::string_view expected) {
    bad_row(line_,
            fmt::format("column '{}' holds '{}', which is no {}", kPerfColumns[index(column)].name,
                        cell(column).substr(0, 40), expected),
            "correct the value or remove the row");
  }

  /// A number, NaN when the cell is empty or no number; the latter is counted.
  double optional_number(PerfColumn column) {
    const std::string_view text = cell(column);
    if (formats::is_missing_text(text)) return kNoNumber;
    if (const auto value = parse_decimal(text, options_.decimals)) return *value;
    ++profile_.input.bad_cells;
    describe(line_,
             fmt::format("column '{}' holds '{}', which is no number; it counts as missing",
                         kPerfColumns[index(column)].name, text.substr(0, 40)),
             "correct the value");
    return kNoNumber;
  }

  Provenance provenance(bool has_metric) {
    const std::string_view mark = cell(PerfColumn::interpolation_status);
    if (mark == "**") return Provenance::interpolated;
    if (mark == "*") return Provenance::mixed;
    if (mark.find_first_not_of(' ') != std::string_view::npos && !formats::is_missing_text(mark)) {
      ++profile_.input.bad_cells;
      describe(line_, "unknown interpolation mark; it counts as none", "known are blank, * and **");
      return Provenance::none;
    }
    return has_metric ? Provenance::measured : Provenance::none;
  }

  void read_row() {
    const auto number = parse_whole(cell(PerfColumn::cycle));
    if (!number) return bad_cell_row(PerfColumn::cycle, "whole number");
    const auto pid = parse_whole(cell(PerfColumn::pid));
    if (!pid) return bad_cell_row(PerfColumn::pid, "whole number");
    const auto cycle_us = parse_decimal(cell(PerfColumn::anchor_dur_us), options_.decimals);
    if (!cycle_us || !parse_us(cell(PerfColumn::anchor_dur_us)))
      return bad_cell_row(PerfColumn::anchor_dur_us, "time in microseconds");
    const std::string_view beta_text = cell(PerfColumn::beta_pct);
    const auto beta = formats::is_missing_text(beta_text) ? kNoNumber : parse_decimal(beta_text, options_.decimals);
    if (!beta) return bad_cell_row(PerfColumn::beta_pct, "number");
    std::int64_t count = 0;
    if (const std::string_view text = cell(PerfColumn::instances_count); !formats::is_missing_text(text)) {
      const auto whole = parse_whole(text);
      if (!whole) return bad_cell_row(PerfColumn::instances_count, "whole number");
      count = *whole;
    }

    const double begin_us = optional_number(PerfColumn::cycle_start_ts);
    const StringId anchor = name(PerfColumn::anchor_name);
    const CycleKey cycle_key{*number, anchor, std::bit_cast<std::uint64_t>(begin_us),
                             std::bit_cast<std::uint64_t>(*cycle_us)};
    const std::uint32_t cycle = index_of(cycles_, profile_.cycles, cycle_key, [&] {
      return ProfileCycle{*number, anchor, begin_us, *cycle_us};
    });
    const StringId host = name(PerfColumn::hostname);
    const std::uint32_t process = index_of(processes_, profile_.processes, ProcessKey{*pid, host}, [&] {
      return ProfileProcess{*pid, host};
    });

    const double duration_us = optional_number(PerfColumn::duration);
    const UseRow key{cycle,
                     process,
                     name(PerfColumn::function_name),
                     name(PerfColumn::device),
                     name(PerfColumn::func_type),
                     name(PerfColumn::simple_name),
                     count,
                     std::bit_cast<std::uint64_t>(*beta),
                     std::bit_cast<std::uint64_t>(duration_us)};
    const std::uint32_t use = index_of(uses_, profile_.functions, key, [&] {
      return FunctionUse{cycle, process, key.function, key.device, key.kind, key.short_name, count, duration_us, *beta};
    });

    ResourceUse resource;
    resource.use = use;
    const std::string_view metric = unguard_name(cell(PerfColumn::metric_name));
    if (!formats::is_missing_text(metric)) resource.metric = profile_.texts.intern(metric);
    resource.provenance = provenance(resource.metric != 0);
    resource.mu_pct = optional_number(PerfColumn::mu_pct);
    resource.sigma_pct = optional_number(PerfColumn::sigma_pct);
    profile_.resources.push_back(resource);
    ++profile_.input.rows;
  }

  PerfCsvOptions options_;
  Profile profile_;
  bool have_header_ = false;
  std::size_t width_ = 0;
  std::array<std::size_t, kPerfColumns.size()> at_{};
  std::span<const std::string_view> fields_;
  std::uint64_t line_ = 0;
  tsl::hopscotch_map<CycleKey, std::uint32_t, KeyHash> cycles_;
  tsl::hopscotch_map<ProcessKey, std::uint32_t, KeyHash> processes_;
  tsl::hopscotch_map<UseRow, std::uint32_t, KeyHash> uses_;
};

}  // namespace

Result<Profile> parse_perf_csv(std::string_view text, std::string_view file, const PerfCsvOptions& options,
                               CsvStyle* style) {
  if (style) {
    const std::size_t line_end = text.find('\n');
    style->crlf = line_end != std::string_view::npos && line_end > 0 && text[line_end - 1] == '\r';
    style->byte_order_mark = text.starts_with("\xEF\xBB\xBF");
  }
  Reader reader(file, options);
  const formats::CsvSink sink{
      [&](std::span<const std::string_view> fields, std::uint64_t line) { reader.row(fields, line); },
      [&](std::uint64_t line, std::string what, std::string remedy) {
        reader.bad_row(line, std::move(what), std::move(remedy));
      }};
  if (const Status status = formats::split_csv(text, file, sink); !status) return status.error();
  return reader.finish();
}

Result<Profile> read_perf_csv(const std::string& path, const PerfCsvOptions& options, CsvStyle* style) {
  auto bytes = formats::read_whole_file(path);
  if (!bytes) return bytes.error();
  return parse_perf_csv(*bytes, path, options, style);
}

}  // namespace culprit::deepdive
