#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "deepdive/csv_names.h"
#include "deepdive/perf_columns.h"
#include "deepdive/perf_csv.h"
#include "formats/io/csv_rows.h"

namespace culprit::deepdive {

namespace {

void append_number(std::string& out, double value) {
  if (std::isfinite(value)) fmt::format_to(std::back_inserter(out), "{:.4f}", value);
}

std::string_view mark(Provenance provenance) {
  switch (provenance) {
    case Provenance::interpolated:
      return "**";
    case Provenance::mixed:
      return "*";
    case Provenance::none:
    case Provenance::measured:
      break;
  }
  return " ";
}

}  // namespace

std::string write_perf_csv(const Profile& profile, const CsvStyle& style) {
  const std::string_view line_end = style.crlf ? "\r\n" : "\n";
  std::string out;
  out.reserve(200 + profile.resources.size() * 250);
  if (style.byte_order_mark) out += "\xEF\xBB\xBF";
  for (const PerfColumnInfo& column : kPerfColumns) {
    if (column.id != PerfColumn::cycle) out += ',';
    out += column.name;
  }
  out += line_end;
  const auto name = [&](StringId id) {
    append_csv_name(out, profile.texts[id]);
    out += ',';
  };
  for (const ResourceUse& resource : profile.resources) {
    const FunctionUse& use = profile.functions[resource.use];
    const ProfileCycle& cycle = profile.cycles[use.cycle];
    const ProfileProcess& process = profile.processes[use.process];
    fmt::format_to(std::back_inserter(out), "{},{},", cycle.number, process.pid);
    name(process.host);
    append_number(out, use.beta_pct);
    out += ',';
    name(use.function);
    if (resource.metric == 0)
      out += "N/A,";
    else
      name(resource.metric);
    name(use.device);
    name(use.kind);
    append_number(out, resource.mu_pct);
    out += ',';
    append_number(out, resource.sigma_pct);
    out += ',';
    append_number(out, use.duration_us);
    out += ',';
    out += mark(resource.provenance);
    out += ',';
    name(cycle.anchor);
    append_number(out, cycle.duration_us);
    out += ',';
    append_number(out, cycle.begin_us);
    fmt::format_to(std::back_inserter(out), ",{},", use.count);
    append_csv_name(out, profile.texts[use.short_name]);
    out += line_end;
  }
  return out;
}

}  // namespace culprit::deepdive
