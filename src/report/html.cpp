#include "report/html.h"

#include <fmt/format.h>
#include <isa-l.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "core/json_writer.h"
#include "report/page_template.h"
#include "report/render.h"
#include "report/run_comparison.h"
#include "report/run_comparison_tables.h"

namespace culprit::report {

namespace {

constexpr std::string_view kPlace = "@REPORT@";

/// In pieces: the library counts with 32 bits.
std::string gzip(std::string text) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string out;
  std::string piece(kPiece, '\0');
  std::vector<std::uint8_t> room(ISAL_DEF_LVL2_DEFAULT);
  isal_zstream stream{};
  isal_deflate_init(&stream);
  stream.level = 2;
  stream.level_buf = room.data();
  stream.level_buf_size = static_cast<std::uint32_t>(room.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.avail_in = 0;  // which the library leaves as it was
  for (std::size_t at = 0; stream.internal_state.state != ZSTATE_END;) {
    if (stream.avail_in == 0) {
      const std::size_t size = std::min(kPiece, text.size() - at);
      stream.next_in = reinterpret_cast<std::uint8_t*>(text.data()) + at;
      stream.avail_in = static_cast<std::uint32_t>(size);
      at += size;
      stream.end_of_stream = at == text.size() ? 1 : 0;
    }
    stream.next_out = reinterpret_cast<std::uint8_t*>(piece.data());
    stream.avail_out = static_cast<std::uint32_t>(piece.size());
    [[maybe_unused]] const int code = isal_deflate(&stream);
    assert(code == COMP_OK);
    out.append(piece, 0, piece.size() - stream.avail_out);
  }
  return out;
}

/// RFC 4648.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = (word << 8U) | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[(word >> (18 - 6 * k)) & 63U];
  }
  return out;
}

void begin_page(JsonWriter& json, const HtmlPage& page, std::string_view kind) {
  json.begin_object(JsonForm::packed);
  json.member("kind", kind);
  json.member("verb", page.verb);
  json.member("version", page.version);
  json.member("files", page.files);
  json.member("heading", page.heading);
}

void write_table(JsonWriter& json, const model::Table& table) {
  constexpr std::array<std::string_view, 7> kTypes = {"text", "name", "count", "time", "percent", "number", "bytes"};
  json.begin_object();
  json.member("title", table.title);
  json.member("key", table.key);
  json.begin_array("columns");
  for (const model::Column& column : table.columns) {
    json.begin_object();
    json.member("title", column.title);
    json.member("key", column.key);
    json.member("type", kTypes.at(static_cast<std::size_t>(column.type)));
    json.member("precision", column.precision);
    json.end_object();
  }
  json.end_array();
  json.begin_array("rows");
  for (const auto& row : table.rows) {
    json.begin_array();
    for (const model::Cell& cell : row) write_cell(json, cell);
    json.end_array();
  }
  json.end_array();
  json.member("notes", table.notes);
  json.end_object();
}

void write_tables_of(JsonWriter& json, std::span<const model::Table> tables) {
  json.begin_array("tables");
  for (const model::Table& table : tables) write_table(json, table);
  json.end_array();
}

void write_cycles_drawn(JsonWriter& json, std::string_view name, std::span<const model::PictureCycles> drawn) {
  json.begin_array(name);
  for (const model::PictureCycles& cycles : drawn) {
    json.begin_object();
    json.member("phase", phase_name(cycles.phase));
    json.member("all", cycles.all);
    json.member("at_ns", cycles.at);
    json.member("period_ns", cycles.period);
    json.end_object();
  }
  json.end_array();
}

/// Those that the page does not make of the comparison itself.
std::vector<model::Table> tables_beside(const model::RunComparison& comparison) {
  constexpr std::array<std::string_view, 10> kBeside = {
      "requests", "work_calls", "step_calls", "blocked_functions", "wakers",
      "rivals",   "python",     "on_cpu",     "disk_requests",     "disks"};
  std::vector<model::Table> tables = evidence_tables(comparison, 0);
  std::erase_if(tables,
                [&](const model::Table& table) { return std::ranges::find(kBeside, table.key) == kBeside.end(); });
  return tables;
}

void write_stretch(JsonWriter& json, const model::PictureStretch& stretch) {
  json.begin_object("stretch");
  json.member("phase", phase_name(stretch.phase));
  json.member("rank", stretch.rank);
  json.member("number", stretch.number);
  json.member("begin_ns", stretch.begin);
  json.member("unix_ns", stretch.unix != 0 ? std::to_string(stretch.unix) : std::string());
  json.member("length_ns", stretch.length);
  json.member("period_ns", stretch.period);
  json.member("names", stretch.names);
  json.begin_array("lanes");
  for (const model::PictureLane& lane : stretch.lanes) {
    json.begin_object();
    json.member("name", lane.name);
    json.member("kind", lane.kind);
    json.begin_array("slices");
    for (const model::PictureLane::Slice& slice : lane.slices) {
      json.value(slice.begin);
      json.value(slice.duration);
      json.value(slice.name);
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.member("left_out", stretch.left_out);
  json.member("lanes_left_out", stretch.lanes_left_out);
  json.end_object();
}

/// Few digits: a curve has no more.
void write_numbers(JsonWriter& json, std::string_view name, const std::vector<double>& values) {
  json.begin_array(name);
  for (const double value : values) std::isfinite(value) ? json.raw(fmt::format("{:.6g}", value)) : json.null();
  json.end_array();
}

void write_picture(JsonWriter& json, const model::RunPicture& picture) {
  json.begin_object();
  json.member("file", picture.file);
  json.member("others", picture.others);
  write_cycles_drawn(json, "cycles", picture.cycles);
  write_cycles_drawn(json, "steps", picture.steps);
  json.begin_array("series");
  for (const model::PictureSeries& series : picture.series) {
    json.begin_object();
    json.member("metric", series.metric);
    json.member("device", series.device);
    json.member("unit", unit_name(series.unit));
    json.member("moved", series.moved);
    json.member("at_ns", series.at);
    write_numbers(json, "mean", series.mean);
    write_numbers(json, "low", series.low);
    write_numbers(json, "high", series.high);
    json.end_object();
  }
  json.end_array();
  json.member("series_left_out", picture.series_left_out);
  json.begin_array("sparks");
  for (const model::PictureFunction& function : picture.functions) {
    json.begin_object();
    json.member("finding", function.finding);
    write_numbers(json, "ns", function.ns);
    json.end_object();
  }
  json.end_array();
  if (picture.stretch) {
    write_stretch(json, *picture.stretch);
  } else {
    json.key("stretch");
    json.null();
  }
  json.end_object();
}

void write_pictures(JsonWriter& json, std::span<const model::RunPicture> pictures) {
  json.begin_array("pictures");
  for (const model::RunPicture& picture : pictures) write_picture(json, picture);
  json.end_array();
}

std::string filled(std::string json) {
  const std::string_view page = page_template();
  const std::size_t place = page.find(kPlace);
  std::string out(page.substr(0, place));
  out += base64(gzip(std::move(json)));
  out += page.substr(place + kPlace.size());
  return out;
}

}  // namespace

Status html_is_there() {
  if (page_template().find(kPlace) != std::string_view::npos) return {};
  return environment_error("this program was built without the page of its HTML reports", "culprit",
                           "build it where npm and its registry can be reached (docs/html.md), or use --json");
}

Result<std::string> comparison_html(const HtmlPage& page, const model::RunComparison& comparison,
                                    std::span<const model::RunPicture> pictures) {
  if (Status status = html_is_there(); !status) return status.error();
  std::string text;
  JsonWriter json(text, JsonForm::packed);
  begin_page(json, page, "comparison");
  json.key("comparison");
  json.raw(comparison_json(comparison));
  const OutcomeText outcome = outcome_text(comparison);
  json.member("answer", outcome.answer);
  json.member("details", outcome.details);
  json.member("notes", note_lines(comparison));
  std::vector<model::Table> tables = page.tables;
  for (model::Table& table : tables_beside(comparison)) tables.push_back(std::move(table));
  write_tables_of(json, tables);
  write_pictures(json, pictures);
  json.end_object();
  return filled(std::move(text));
}

Result<std::string> tables_html(const HtmlPage& page, std::span<const model::Table> tables) {
  if (Status status = html_is_there(); !status) return status.error();
  std::string text;
  JsonWriter json(text, JsonForm::packed);
  begin_page(json, page, "tables");
  write_cycles_drawn(json, "cycles", page.cycles);
  write_tables_of(json, tables);
  if (!page.verdicts.empty()) model::write_verdicts(json, page.verdicts);
  if (!page.pictures.empty()) write_pictures(json, page.pictures);
  json.end_object();
  return filled(std::move(text));
}

}  // namespace culprit::report
