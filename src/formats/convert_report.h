// Reports of Nsight Systems and Nsight Compute are read through NVIDIA's own programs, where those are installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace culprit::formats {

/// How a program makes a file that can be read of one that only it can open.
struct Conversion {
  std::vector<std::string_view> command;  ///< INPUT and OUTPUT stand for the files; without OUTPUT it is what it prints
  std::string_view output;                ///< name of the file that is made
};

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

/// Runs the command on `path` (no shell; found in PATH) into a new temporary folder.
/// Errors: the program is not installed (the remedy is the command to run elsewhere), or it failed (its last words).
Result<ConvertedReport> convert_report(const std::string& path, const Conversion& conversion);

}  // namespace culprit::formats
