// Reports of Nsight Systems and Nsight Compute are read through NVIDIA's own programs, where those are installed.
#pragma once

#include <string>

#include "core/error.h"
#include "formats/registry.h"

namespace culprit::formats {

/// A converted file in a folder of its own; both vanish with this object.
class ConvertedReport {
 public:
  ConvertedReport(std::string folder, std::string file) : folder_(std::move(folder)), file_(std::move(file)) {}
  ConvertedReport(ConvertedReport&& other) noexcept;
  ConvertedReport& operator=(ConvertedReport&& other) = delete;
  ~ConvertedReport();
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string folder_;
  std::string file_;
};

/// Runs `nsys export` or `ncu --import` (no shell; found in PATH) into a new temporary folder.
/// Errors: the program is not installed (the remedy is the command to run elsewhere), or it failed (its last words).
Result<ConvertedReport> convert_report(const std::string& path, Format format);

}  // namespace culprit::formats
