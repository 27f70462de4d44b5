#include "report/kernels_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/escape.h"
#include "core/units.h"

namespace culprit::report {

namespace {

constexpr std::size_t kShareWidth = 40;
constexpr double kChartWidth = 360;
constexpr double kChartHeight = 200;
constexpr double kChartMargin = 48;

double share(Ns part, Ns total) { return total > 0 ? static_cast<double>(part) / static_cast<double>(total) : 0; }

/// Eighths of a character, so that small shares are seen.
std::string bar(double fraction) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * kShareWidth * 8));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

double largest_share(const model::UseHistogram& histogram, Ns total) {
  double largest = share(histogram.unknown, total);
  for (const Ns time : histogram.bins) largest = std::max(largest, share(time, total));
  return largest;
}

}  // namespace

std::string use_plot(const model::UseReport& report) {
  std::string text;
  for (const model::UseHistogram& histogram : report.histograms) {
    text += fmt::format("Time by {} use\n", escape_terminal(histogram.axis));
    const double largest = std::max(1e-12, largest_share(histogram, report.total));
    const auto row = [&](const std::string& label, Ns time) {
      const double part = share(time, report.total);
      if (time == 0) return;
      text += fmt::format("  {:>11}  {:>6.2f} %  {}\n", label, part * 100, bar(part / largest));
    };
    const std::size_t step = 100 / histogram.bins.size();
    for (std::size_t b = 0; b < histogram.bins.size(); ++b)
      row(fmt::format("{} to {} %", b * step, (b + 1) * step), histogram.bins[b]);
    row("unknown", histogram.unknown);
    text += "\n";
  }
  return text;
}

std::string use_svg(const model::UseReport& report) {
  const auto charts = static_cast<double>(std::max<std::size_t>(1, report.histograms.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      charts * (kChartWidth + kChartMargin) + kChartMargin, kChartHeight + 2 * kChartMargin);
  double left = kChartMargin;
  for (const model::UseHistogram& histogram : report.histograms) {
    const double largest = std::max(1e-12, largest_share(histogram, report.total));
    const double bottom = kChartMargin + kChartHeight;
    svg += fmt::format(
        "<g transform=\"translate({:.0f},0)\">\n<text x=\"0\" y=\"{:.0f}\" font-size=\"13\">Share of kernel "
        "time by {} use</text>\n",
        left, kChartMargin - 16, escape_html(histogram.axis));
    const double width = kChartWidth / static_cast<double>(histogram.bins.size());
    for (std::size_t b = 0; b < histogram.bins.size(); ++b) {
      const double part = share(histogram.bins[b], report.total);
      const double height = part / largest * kChartHeight;
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"#3b6ea5\"><title>{} to {} %: "
          "{:.2f} "
          "%, {}</title></rect>\n",
          static_cast<double>(b) * width, bottom - height, width - 1, height, b * 100 / histogram.bins.size(),
          (b + 1) * 100 / histogram.bins.size(), part * 100, format_duration(histogram.bins[b]));
    }
    svg += fmt::format("<line x1=\"0\" y1=\"{0:.0f}\" x2=\"{1:.0f}\" y2=\"{0:.0f}\" stroke=\"#333333\"/>\n", bottom,
                       kChartWidth);
    for (int tick = 0; tick <= 100; tick += 20)
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{} %</text>\n",
                         kChartWidth * tick / 100, bottom + 16, tick);
    for (const double limit : {report.low, report.high})
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\" stroke=\"#b03030\" "
          "stroke-dasharray=\"4 3\"/>\n",
          kChartWidth * limit, kChartMargin, bottom);
    svg += fmt::format(
        "<text x=\"-6\" y=\"{:.0f}\" text-anchor=\"end\">{:.0f} %</text>\n<text x=\"-6\" y=\"{:.0f}\" "
        "text-anchor=\"end\">0</text>\n",
        kChartMargin + 4, largest * 100, bottom + 4);
    if (histogram.unknown > 0)
      svg += fmt::format("<text x=\"0\" y=\"{:.0f}\">unknown: {:.2f} %</text>\n", bottom + 34,
                         share(histogram.unknown, report.total) * 100);
    svg += "</g>\n";
    left += kChartWidth + kChartMargin;
  }
  return svg + "</svg>\n";
}

}  // namespace culprit::report
