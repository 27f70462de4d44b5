#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "formats/io/csv_rows.h"
#include "formats/profile_csv/names.h"
#include "formats/profile_csv/perf_columns.h"
#include "formats/profile_csv/perf_csv.h"
#include "formats/profile_csv/scale.h"

namespace culprit::formats {

namespace {

using namespace model;

void append_number(std::string& out, double value) {
  if (std::isfinite(value)) fmt::format_to(std::back_inserter(out), "{:.4f}", value);
}

/// Nanoseconds as microseconds with four decimals, exactly.
void append_time(std::string& out, Ns ns) {
  const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  fmt::format_to(std::back_inserter(out), "{}{}.{:03}0", ns < 0 ? "-" : "", size / 1000, size % 1000);
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
    const bool reported = profile.reported;
    fmt::format_to(std::back_inserter(out), "{},{},", cycle.number, process.pid);
    name(process.host);
    append_number(out, reported ? use.reported_beta_pct : use.beta * 100);
    out += ',';
    name(use.function);
    if (resource.metric == 0)
      out += "N/A,";
    else
      name(resource.metric);
    name(use.device);
    name(use.kind);
    const Scale scale = profile_scale(profile.texts[resource.metric], resource.unit);
    append_number(out, reported ? resource.reported_mu_pct : scale.from_si(resource.mu));
    out += ',';
    append_number(out, reported ? resource.reported_sigma_pct : scale.from_si(resource.sigma));
    out += ',';
    reported ? append_number(out, use.reported_duration_us) : append_time(out, use.duration);
    out += ',';
    out += mark(resource.provenance);
    out += ',';
    name(cycle.anchor);
    reported ? append_number(out, cycle.reported_duration_us) : append_time(out, cycle.duration);
    out += ',';
    reported ? append_number(out, cycle.reported_begin_us) : append_time(out, cycle.begin);
    fmt::format_to(std::back_inserter(out), ",{},", use.count);
    append_csv_name(out, profile.texts[use.short_name]);
    out += line_end;
  }
  return out;
}

}  // namespace culprit::formats
