// A lower clock or power limit of all GPUs, by nvidia-smi. Everything else on a GPU needs a program that computes on
// it; those faults say so and refuse.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/text.h"
#include "faults/catalog.h"
#include "faults/command.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

/// One setting of one GPU: how it is made and how it is taken back.
struct Change {
  std::vector<std::string> make;
  std::vector<std::string> undo;
  std::string text;
};

class GpuSetting final : public Injector {
 public:
  explicit GpuSetting(std::vector<Change> changes) : changes_(std::move(changes)) {}
  [[nodiscard]] std::string what() const override {
    std::string text;
    for (const Change& change : changes_) text += (text.empty() ? "" : "; ") + change.text;
    return text;
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard& guard) override {
    for (const Change& change : changes_) {
      if (Status status = guard.add({Undo::Kind::command, change.undo}); !status) return status;
      const auto outcome = run_command(change.make);
      if (!outcome) return outcome.error();
      if (outcome->exit_code != 0) return environment_error(outcome->text, change.make.front());
    }
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override {}
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"gpus", static_cast<std::int64_t>(changes_.size())}, {"setting", what()}};
  }

 private:
  std::vector<Change> changes_;
};

std::optional<double> leading_number(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// The rows of `nvidia-smi --query-gpu=FIELDS`, as numbers; a field that is "[N/A]" is nothing.
Result<std::vector<std::vector<std::optional<double>>>> query(const std::string& program, const std::string& fields) {
  const auto outcome = run_command({program, "--query-gpu=" + fields, "--format=csv,noheader,nounits"});
  if (!outcome) return outcome.error();
  if (outcome->exit_code != 0) return environment_error(outcome->text, program);
  std::vector<std::vector<std::optional<double>>> rows;
  for (std::string_view line : split_lines(outcome->text)) {
    std::vector<std::optional<double>>& row = rows.emplace_back();
    while (true) {
      const std::size_t end = line.find(',');
      row.push_back(leading_number(line.substr(0, end)));
      if (end == std::string_view::npos) break;
      line.remove_prefix(end + 1);
    }
  }
  return rows;
}

Status program_available() {
  if (!find_program("nvidia-smi"))
    return environment_error("this machine has no NVIDIA GPU, or no driver (nvidia-smi is not installed)", "");
  return {};
}

}  // namespace

Status gpu_setting_available() {
  if (Status status = program_available(); !status) return status;
  if (geteuid() != 0) return environment_error("only root may change settings of a GPU", "", "run as root");
  return {};
}

Status gpu_load_available() {
  if (Status status = program_available(); !status) return status;
  return environment_error("not built yet: it needs a program that computes on the GPU", "");
}

Result<std::unique_ptr<Injector>> make_gpu_setting(const Request& request, const ProcessHandle*) {
  const auto program = find_program("nvidia-smi");
  if (!program) return program_available().error();
  const bool clock = request.fault == "gpu-clock";
  const auto rows = query(*program, clock ? "index,clocks.max.sm" : "index,power.limit,power.min_limit");
  if (!rows) return rows.error();
  std::vector<Change> changes;
  for (const auto& row : *rows) {
    if (row.size() != (clock ? 2U : 3U) ||
        !std::ranges::all_of(row, [](const auto& value) { return value.has_value(); }))
      return environment_error("a GPU does not tell its present setting, so it could not be brought back", *program);
    const std::string index = fmt::format("{:.0f}", *row[0]);
    if (clock) {
      constexpr double kLeastShare = 0.1;
      const double wanted = *row[1] * std::max(kLeastShare, 1 - request.severity);
      changes.push_back({{*program, "-i", index, fmt::format("--lock-gpu-clocks=0,{:.0f}", wanted)},
                         {*program, "-i", index, "--reset-gpu-clocks"},
                         fmt::format("the clock of GPU {} is locked to at most {:.0f} MHz", index, wanted)});
    } else {
      const double wanted = *row[1] - request.severity * (*row[1] - *row[2]);
      changes.push_back({{*program, "-i", index, fmt::format("--power-limit={:.2f}", wanted)},
                         {*program, "-i", index, fmt::format("--power-limit={:.2f}", *row[1])},
                         fmt::format("the power of GPU {} is limited to {:.0f} W", index, wanted)});
    }
  }
  if (changes.empty()) return environment_error("shows no GPU", *program);
  return std::unique_ptr<Injector>(std::make_unique<GpuSetting>(std::move(changes)));
}

}  // namespace culprit::faults
